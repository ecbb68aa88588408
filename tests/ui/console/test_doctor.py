"""The doctor on real PostgreSQL databases: those that are well, and each thing that may be wrong with one."""

import pytest
import sqlalchemy as sa

from engine.settings import Settings
from storage import Store
from tests import postgresql
from tests.server import free_port
from ui.console.doctor import examine

pytestmark = pytest.mark.skipif(not postgresql.there_is_one(), reason=postgresql.MISSING)


def told(url: str) -> str:
    settings = Settings(backend="scripted", database_url=url)
    (line,) = [str(finding) for finding in examine(settings, Store(url)) if finding.what == "database"]
    return line


def change(url: str, *statements: str) -> str:
    """The same database, after that."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()
    return url


@pytest.fixture(scope="module")
def guest() -> str:
    """An account that owns nothing."""
    change(postgresql.new_database(), "CREATE ROLE guest LOGIN")
    return "guest"


def by(account: str, url: str) -> str:
    return sa.make_url(url).set(username=account).render_as_string(hide_password=False)


def test_a_database_that_is_well_is_told_with_its_version() -> None:
    new, used = told(postgresql.new_database()), told(postgresql.migrated())
    assert new.startswith("ok    database  PostgreSQL 1")
    assert new.endswith(" is there; the first start makes the tables.")
    assert used.startswith("ok    database  PostgreSQL 1")
    assert used.endswith(" is there, with 0 exchanges.")


@pytest.mark.parametrize(
    ("statement", "mark", "says"),
    [
        ("UPDATE alembic_version SET version_num = '0001'", "note", "in an older schema; the next start, or `migrate`"),
        ("UPDATE alembic_version SET version_num = '9999'", "bad", "a newer version's tables; install that version"),
        ("DROP TABLE alembic_version", "bad", "another program's tables there; name an empty database"),
    ],
)
def test_a_database_that_is_not_this_versions_is_told(statement: str, mark: str, says: str) -> None:
    line = told(change(postgresql.migrated(), statement))
    assert line.startswith(mark)
    assert says in line


def test_an_account_that_may_too_little_is_told_what_to_ask_for(guest: str) -> None:
    closed = change(postgresql.new_database(), "REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    line = told(by(guest, closed))
    assert line.startswith("bad")
    assert "lets this account make no tables; let the database's owner GRANT CREATE" in line
    unindexed = change(
        postgresql.migrated(),
        "DROP EXTENSION pg_trgm CASCADE",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {guest}",
    )
    line = told(by(guest, unindexed))
    assert line.startswith("note")
    assert "let its owner run CREATE EXTENSION pg_trgm" in line


def test_one_that_does_not_answer_is_told_without_its_password() -> None:
    line = told(f"postgresql+psycopg://qdesk:very-secret@127.0.0.1:{free_port()}/qdesk")
    assert line.startswith("bad")
    assert "start PostgreSQL, or correct QDESK_DATABASE_URL" in line
    assert "very-secret" not in line
