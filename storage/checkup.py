"""How a PostgreSQL database stands, for whoever asks before a server opens it. Changes nothing and holds nothing."""

from dataclasses import dataclass
from typing import Literal

import sqlalchemy as sa

from storage import text_index
from storage.schema import newest

CONNECT_S = 5
MAY_CREATE = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
# Whoever may create in the database may make this extension, where its files are installed.
MAY_INDEX = """
    SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm')
        OR (EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_trgm')
            AND has_database_privilege(current_database(), 'CREATE'))
"""

Schema = Literal["none", "older", "newest", "newer", "foreign"]


@dataclass(frozen=True, slots=True)
class Checkup:
    """`trouble` is why nobody can connect, and then nothing else is known. `schema` "none": no table is there yet."""

    trouble: str = ""
    version: str = ""  # of the database server
    schema: Schema = "none"
    exchanges: int = 0
    may_create: bool = False  # tables
    indexed: bool = False  # text is found by an index, or will be from the next start on


def check_up(url: sa.URL) -> Checkup:
    """Never raises for what is wrong with the database."""
    engine = sa.create_engine(url, poolclass=sa.NullPool, connect_args={"connect_timeout": CONNECT_S})
    try:
        with engine.connect() as connection:
            return _of(connection)
    except sa.exc.DBAPIError as error:
        return Checkup(trouble=str(error.orig).strip().splitlines()[0])
    finally:
        engine.dispose()


def _of(connection: sa.Connection) -> Checkup:
    schema = _schema(connection)
    ours = schema in ("older", "newest")
    return Checkup(
        version=str(connection.exec_driver_sql("SHOW server_version").scalar_one()).split()[0],
        schema=schema,
        exchanges=connection.exec_driver_sql("SELECT count(*) FROM exchanges").scalar_one() if ours else 0,
        may_create=bool(connection.exec_driver_sql(MAY_CREATE).scalar_one()),
        indexed=text_index.is_there(connection) or bool(connection.exec_driver_sql(MAY_INDEX).scalar_one()),
    )


def _schema(connection: sa.Connection) -> Schema:
    tables = sa.inspect(connection).get_table_names()
    if not tables:
        return "none"
    if "alembic_version" not in tables or "exchanges" not in tables:
        return "foreign"
    (revision,) = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalars().all() or [""]
    return "newest" if revision == newest() else "newer" if revision > newest() else "older"
