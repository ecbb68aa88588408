"""PostgreSQL's index for finding text: the trigrams of prompts and answers, by its extension pg_trgm.

Like SQLite's it holds final rows only, so that an answer being written is not indexed again every second. Where the
extension may not be made there is no index: the rows themselves are looked through, which finds the same and takes
longer. Whether there is one depends on what the database permits, not on the schema's version, so it is asked at each
start. Words of one or two characters have no trigram of their own and never need it.
"""

import sqlalchemy as sa
from loguru import logger

NAME = "exchanges_search"  # as SQLite's is called
FINAL = "status NOT IN ('queued', 'running')"  # queries must say it in these very words to be answered by the index
MISSING = (
    "Text in the log is looked for without an index, which takes long in a long log: {why}. Let whoever owns the "
    "database run CREATE EXTENSION pg_trgm in it, then start Qdesk anew."
)
BLIND = (
    "This database takes letters beyond ASCII for no letters (its LC_CTYPE is {locale}), so Chinese is looked for "
    "without an index. A database that is made with LOCALE 'C.UTF-8' has one."
)
MAKE = f"CREATE INDEX {NAME} ON exchanges USING gin (prompt gin_trgm_ops, answer gin_trgm_ops) WHERE {FINAL}"


def is_there(connection: sa.Connection) -> bool:
    return connection.exec_driver_sql(f"SELECT to_regclass('{NAME}')").scalar() is not None


def make(connection: sa.Connection) -> None:
    """Make the index unless it is there. Where that is not permitted, it is said in the log and nothing is changed."""
    if is_there(connection):
        return
    try:
        with connection.begin_nested():
            connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS pg_trgm")
            connection.exec_driver_sql(MAKE)
            trigrams = connection.exec_driver_sql("SELECT show_trgm('天气预报')").scalar()
    except sa.exc.DBAPIError as error:
        logger.warning("{}", MISSING.format(why=str(error.orig).strip().splitlines()[0].rstrip(".")))
        return
    if not trigrams:
        logger.warning("{}", BLIND.format(locale=connection.exec_driver_sql("SHOW lc_ctype").scalar()))
