"""Bringing a database to the newest schema, and refusing one that is not ours. Runs Alembic in code."""

import itertools
from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from storage import text_index
from storage.backup import Done
from storage.errors import StorageError

SCRIPTS = Path(__file__).parent / "migrations"
MIGRATING = 7_151_000_001  # the name of an advisory lock, anything that no other program uses


def migrate(url: sa.URL, revision: str = "head", *, report: Done | None = None) -> None:
    """Migrate in one transaction, and report each version.

    Raises StorageError for a foreign, damaged, unreadable or newer database.
    """
    engine = sa.create_engine(url, poolclass=sa.NullPool, hide_parameters=True)
    if url.get_backend_name() == "sqlite":
        sa.event.listen(engine, "connect", _as_migrations_need)
        sa.event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.begin() as connection:
            if connection.dialect.name == "postgresql":  # several processes may start at once
                connection.execute(sa.func.pg_advisory_xact_lock(MIGRATING).select())
            to_do = _check_ours(connection)
            config = alembic_config()
            config.attributes.update(connection=connection, applied=_counted(to_do, report) if report else [])
            command.upgrade(config, revision)
            if connection.dialect.name == "postgresql":
                text_index.make(connection)
            if connection.dialect.name == "sqlite" and connection.exec_driver_sql("PRAGMA foreign_key_check").first():
                raise StorageError("The migration of the database went wrong and was undone.")
    except sa.exc.DBAPIError as error:
        where = url.database if url.get_backend_name() == "sqlite" else url.render_as_string()
        raise StorageError(f"The database {where} cannot be opened: {str(error.orig).strip()}.") from error
    finally:
        engine.dispose()


def _counted(to_do: int, report: Done) -> Callable[..., None]:
    """What Alembic calls after each version."""
    done = itertools.count(1)
    return lambda **_: report(next(done), to_do)


def alembic_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config


def _as_migrations_need(connection: sa.engine.interfaces.DBAPIConnection, _: object) -> None:
    """Foreign keys are off because tables are copied; the check comes before the commit."""
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA busy_timeout=5000")
    cursor.execute("PRAGMA foreign_keys=OFF")
    cursor.close()


def _check_ours(connection: sa.Connection) -> int:
    """How many versions it is behind."""
    tables = set(sa.inspect(connection).get_table_names())
    if tables and "alembic_version" not in tables:
        raise StorageError("The database belongs to another program; choose another file or an empty database.")
    current = MigrationContext.configure(connection).get_current_heads()
    known = [script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()]
    if not set(known).issuperset(current):
        raise StorageError("The database was made by a newer version of Qdesk; install that version to open it.")
    return known.index(current[0]) if current else len(known)  # the newest is the first
