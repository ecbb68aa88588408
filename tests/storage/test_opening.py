"""Opening and closing: files and their modes, what is refused and why, and what a crash has left."""

import os
import sqlite3
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.types import Status
from storage import StorageError, StorageUnavailable, Store
from storage.records import ExchangeFilter
from tests.storage.making import NOON, a_person, an_exchange


def test_folder_and_files_are_for_the_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "data" / "qdesk.db"
    old_mask = os.umask(0)
    store = Store(f"sqlite:///{file}")
    store.open()
    os.umask(old_mask)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    files = list(file.parent.iterdir())
    assert len(files) == 3  # the database, its write-ahead log, and the log's index
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    store.close()
    assert list(file.parent.iterdir()) == [file]


def test_every_connection_has_its_pragmas(sqlite_store: Store) -> None:
    database = sqlite_store._database
    for engine, query_only in ((database._read_engine, 1), (database._write_engine, 0)):
        with engine.connect() as connection:
            found = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "query_only")
            }
        assert found == {
            "journal_mode": "wal",
            "synchronous": 2,  # FULL
            "foreign_keys": 1,
            "secure_delete": 1,
            "query_only": query_only,
        }


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense", "is not a database URL"),
        ("mysql://host/name", "must be SQLite or PostgreSQL"),
        ("oddsql://host/name", "no database driver oddsql"),
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
    ],
)
def test_another_kind_of_address_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(StorageError, match=sentence):
        Store(url).open()


@pytest.mark.parametrize("content", [b"This is a letter, not a database.", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(StorageError, match=r"The database .*qdesk\.db cannot be opened"):
        Store(f"sqlite:///{file}").open()
    assert file.read_bytes() == content


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be opened: Is a directory"):
        Store(f"sqlite:///{tmp_path}").open()


def test_a_file_in_the_place_of_the_folder_is_refused(file: Path) -> None:
    file.write_text("here")
    with pytest.raises(StorageError, match="cannot be opened"):
        Store(f"sqlite:///{file}/qdesk.db").open()


def test_another_programs_database_is_refused_and_left_alone(file: Path) -> None:
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE recipes (name)")
    other.close()
    with pytest.raises(StorageError, match="belongs to another program"):
        Store(f"sqlite:///{file}").open()
    assert tables(file) == {"recipes"}


def test_a_database_of_a_newer_version_is_refused(file: Path) -> None:
    store = Store(f"sqlite:///{file}")
    store.open()
    store.close()
    with sqlite3.connect(file) as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
    newer.close()
    with pytest.raises(StorageError, match="newer version"):
        Store(f"sqlite:///{file}").open()


async def test_what_a_crash_left_unfinished_is_interrupted_with_its_text(url: str) -> None:
    store = Store(url)
    store.open()
    ada = await a_person(store)
    waiting = an_exchange("waiting", "", status=Status.QUEUED, finished_at=None, person=ada.id)
    running = an_exchange("running", "so far", status=Status.RUNNING, finished_at=None)
    done = an_exchange("done", "all of it")
    for exchange in (waiting, running, done):
        await store.exchanges.record(exchange)
    store.close()

    store = Store(url)
    store.open()
    assert await store.exchanges.get(done.id) == done
    for exchange in (waiting, running):
        kept = await store.exchanges.get(exchange.id)
        assert kept is not None
        assert (kept.status, kept.answer) == (Status.INTERRUPTED, exchange.answer)
        assert kept.finished_at is not None
        assert abs(datetime.now(UTC) - kept.finished_at) < timedelta(minutes=1)
    assert [row.id for row in (await store.exchanges.search(ExchangeFilter(text="so far"))).items] == [running.id]
    store.close()


async def test_closing_writes_what_is_queued_and_refuses_what_comes_later(url: str) -> None:
    store = Store(url)
    store.open()
    exchanges = [an_exchange(queued_at=NOON + timedelta(seconds=number)) for number in range(600)]
    futures = [store.exchanges.record(exchange) for exchange in exchanges]
    store.close()
    store.close()
    with pytest.raises(StorageUnavailable, match="closed"):
        store.exchanges.record(an_exchange())
    for future in futures:
        await future

    store = Store(url)
    store.open()
    page = await store.exchanges.search(ExchangeFilter(), limit=1000)
    assert [row.id for row in page.items] == [exchange.id for exchange in reversed(exchanges)]
    store.close()


def test_a_store_that_was_never_opened_closes(url: str) -> None:
    Store(url).close()


def tables(file: Path) -> set[str]:
    with sqlite3.connect(file) as connection:
        found = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    return found
