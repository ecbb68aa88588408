"""A store on a real file for each test, and on a real PostgreSQL where QDESK_TEST_POSTGRESQL_URL names one.

The PostgreSQL database is emptied before each test; never name one that is in use.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from storage import Store
from tests.databases import new_store

POSTGRESQL = os.environ.get("QDESK_TEST_POSTGRESQL_URL", "")


@pytest.fixture(params=["sqlite", "postgresql"] if POSTGRESQL else ["sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'qdesk.db'}"
    engine = sa.create_engine(POSTGRESQL, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP SCHEMA public CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA public")
    return POSTGRESQL


@pytest.fixture
def store(url: str, file: Path) -> Iterator[Store]:
    if url.startswith("sqlite"):
        store = new_store(file)
    else:
        store = Store(url)
        store.open()
    yield store
    store.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a test's SQLite database goes that PostgreSQL has no part in."""
    return tmp_path / "qdesk.db"


@pytest.fixture
def sqlite_store(file: Path) -> Iterator[Store]:
    store = new_store(file)
    yield store
    store.close()
