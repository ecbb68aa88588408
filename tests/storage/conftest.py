"""A store on a real file for each test, and on a real PostgreSQL where there is one (tests/postgresql.py)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import Store
from tests import postgresql
from tests.databases import new_database, new_store

KINDS = ["sqlite", "postgresql"] if postgresql.there_is_one() else ["sqlite"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def empty(kind: str, file: Path) -> str:
    """The address of an empty database."""
    return f"sqlite:///{file}" if kind == "sqlite" else postgresql.new_database()


@pytest.fixture
def url(kind: str, file: Path) -> str:
    """The address of a database with the newest schema, which `store` is open on."""
    if kind == "postgresql":
        return postgresql.migrated()
    new_database(file)
    return f"sqlite:///{file}"


@pytest.fixture
def store(url: str) -> Iterator[Store]:
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
