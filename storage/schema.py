"""Whether a database has all that a migration would make, found out without Alembic, whose import takes its time."""

from pathlib import Path

import sqlalchemy as sa

from storage import text_index

VERSIONS = Path(__file__).parent / "migrations" / "versions"


def newest() -> str:
    """The last migration's revision, by which its file's name begins."""
    return max(file.name[:4] for file in VERSIONS.glob("[0-9]*.py"))


def is_newest(url: sa.URL) -> bool:
    """Never raises: what is wrong with a database is for storage/migrate.py to say."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    try:
        with engine.connect() as connection:
            revisions = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalars().all()
            indexed = connection.dialect.name == "sqlite" or text_index.is_there(connection)
    except sa.exc.DBAPIError:
        return False
    finally:
        engine.dispose()
    return indexed and revisions == [newest()]
