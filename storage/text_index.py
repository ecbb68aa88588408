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
WITHOUT = "Text in the log is looked for without an index, which takes long in a long log: {why}. "
NO_EXTENSION = WITHOUT + "Let whoever owns the database run CREATE EXTENSION pg_trgm in it, then start Qdesk anew."
NOT_MADE = WITHOUT + "The next start tries again to make the index."
MAKING = (
    "The index for finding text is made now, over {rows} exchanges. That takes a while in a long log, and until it is "
    "done nobody can write to the log, other processes neither."
)
BLIND = (
    "This database takes letters beyond ASCII for no letters (its LC_CTYPE is {locale}), so Chinese is looked for "
    "without an index. A database that is made with LOCALE 'C.UTF-8' has one."
)
ENABLE = "CREATE EXTENSION IF NOT EXISTS pg_trgm"
MAKE = f"CREATE INDEX {NAME} ON exchanges USING gin (prompt gin_trgm_ops, answer gin_trgm_ops) WHERE {FINAL}"


def is_there(connection: sa.Connection) -> bool:
    return connection.exec_driver_sql(f"SELECT to_regclass('{NAME}')").scalar() is not None


def make(connection: sa.Connection) -> None:
    """Make the index unless it is there, within the migration. Where that cannot be done, the log says why."""
    if is_there(connection) or not _done(connection, ENABLE, NO_EXTENSION):
        return
    if rows := connection.exec_driver_sql("SELECT count(*) FROM exchanges").scalar():
        logger.info("{}", MAKING.format(rows=rows))
    if not _done(connection, MAKE, NOT_MADE):
        return
    if not connection.exec_driver_sql("SELECT show_trgm('天气预报')").scalar():
        logger.warning("{}", BLIND.format(locale=connection.exec_driver_sql("SHOW lc_ctype").scalar()))


def _done(connection: sa.Connection, statement: str, otherwise: str) -> bool:
    """Run it. False: the database refused, which is in the log now, and nothing is changed."""
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statement)
    except sa.exc.DBAPIError as error:
        logger.warning("{}", otherwise.format(why=str(error.orig).strip().splitlines()[0].rstrip(".")))
        return False
    return True
