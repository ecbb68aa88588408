"""A locked database, a full disk, work that fails: nothing queued is lost, and `health` says why it waits."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from loguru import logger
from sqlmodel import Session

from engine.types import Status
from storage import SearchTooSlow, StorageUnavailable, Store, database, writer
from storage.models import OptionRow
from storage.records import ExchangeFilter
from tests.disks import fill_up, small_disk_at
from tests.storage.making import NOON, a_person, an_exchange, fill

LOCKED = "The database is locked by another program."


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Another program that is in the middle of a long change."""
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


async def until(condition: Callable[[], bool]) -> None:
    """`health` has no event to wait for; it is asked, as the service asks it."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  (there is no event)
            await asyncio.sleep(0.02)


async def test_fifty_readers_and_writers_beside_a_program_that_locks_lose_nothing(
    sqlite_store: Store, file: Path
) -> None:
    store = sqlite_store
    written: list[str] = []

    async def one(number: int) -> None:
        for turn in range(5):
            exchange = an_exchange(f"number {number} turn {turn}")
            await store.exchanges.record(exchange)
            assert await store.exchanges.get(exchange.id) == exchange
            written.append(exchange.id)

    locker = threading.Thread(target=lock_for_a_second, args=(file,))
    locker.start()
    await asyncio.gather(*(one(number) for number in range(50)))
    locker.join()
    rows = (await store.exchanges.search(ExchangeFilter(), limit=1000)).items
    assert sorted(row.id for row in rows) == sorted(written)
    assert len(rows) == 250


def lock_for_a_second(file: Path) -> None:
    with locked(file):
        threading.Event().wait(1)


async def test_a_lock_delays_writing_is_told_and_is_over_by_itself(sqlite_store: Store, file: Path) -> None:
    store = sqlite_store
    before = an_exchange("before")
    await store.exchanges.record(before)
    exchanges = [an_exchange(f"while locked {number}") for number in range(20)]
    with locked(file):
        futures = [store.exchanges.record(exchange) for exchange in exchanges]
        await until(lambda: store.exchanges.health() == LOCKED)
        assert await store.exchanges.get(before.id) == before  # reading goes on
        assert not any(future.done() for future in futures)
    await asyncio.gather(*futures)
    assert store.exchanges.health() is None
    assert len((await store.exchanges.search(ExchangeFilter())).items) == 21


async def test_queued_snapshots_of_one_exchange_become_one(sqlite_store: Store, file: Path) -> None:
    """So that a slow disk cannot fill the memory. The shared future shows that they are one."""
    asked = an_exchange("asked", "", status=Status.RUNNING)
    snapshots = [replace(asked, answer="word " * number) for number in range(1000)]
    last = replace(asked, answer="the end", status=Status.DONE)
    with locked(sqlite_path := file):
        futures = {sqlite_store.exchanges.record(snapshot) for snapshot in snapshots[:500]}
        await until(lambda: sqlite_store.exchanges.health() == LOCKED)
        futures |= {sqlite_store.exchanges.record(snapshot) for snapshot in [*snapshots[500:], last]}
        assert len(futures) <= 4
    await asyncio.gather(*futures)
    assert await sqlite_store.exchanges.get(asked.id) == last
    assert sqlite_path.exists()


async def test_a_change_that_waits_too_long_is_withdrawn_for_good(
    sqlite_store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "WRITE_PATIENCE_S", 0.1)
    with locked(file):
        with pytest.raises(StorageUnavailable, match="locked by another program"):
            await sqlite_store.users.create("ada", "hash", "staff")
        assert sqlite_store.exchanges.health() == LOCKED
    await until(lambda: sqlite_store.exchanges.health() is None)  # with an empty queue, too
    assert await sqlite_store.users.count() == 0
    assert await sqlite_store.options.get("storage.probe") is None
    await a_person(sqlite_store, "ada")


async def test_a_store_that_goes_on_keeps_a_new_conversation_until_it_can_be_written(file: Path) -> None:
    """A question, its conversation and its answer while the database is locked: all is written, in this order."""
    store = Store(f"sqlite:///{file}", goes_on=True)
    store.open()
    ada = await a_person(store, "ada")
    with locked(file):
        made = await store.conversations.create(ada.id, title="Asked meanwhile")
        assert store.exchanges.health() == LOCKED
        exchange = an_exchange(person=ada.id, conversation_id=made.id)
        writing = store.exchanges.record(exchange)
        assert await store.conversations.set_head(made.id, ada.id, exchange.id)
        assert await store.conversations.get(made.id, ada.id) == made
        assert await store.conversations.get(made.id, "somebody else") is None
        assert (await store.conversations.list(ada.id)).items == []
    await writing
    store.close()

    later = Store(f"sqlite:///{file}")
    later.open()
    found = await later.conversations.get(made.id, ada.id)
    assert found is not None
    assert (found.title, found.head_id, found.created_at) == (made.title, exchange.id, made.created_at)
    assert await later.conversations.exchanges(made.id, ada.id) == [exchange]
    later.close()


async def test_a_person_who_goes_away_does_not_take_their_change_along(sqlite_store: Store, file: Path) -> None:
    with locked(file):
        change = asyncio.create_task(sqlite_store.audit.add("ada", "review.open"))
        await asyncio.sleep(0)  # it is queued now
        change.cancel()
        with pytest.raises(asyncio.CancelledError):
            await change
    await sqlite_store.audit.add("ada", "later")
    assert [entry.action for entry in (await sqlite_store.audit.list()).items] == ["later", "review.open"]


async def test_work_that_fails_leaves_nothing_and_harms_nobody(store: Store) -> None:
    def fails(session: Session) -> None:
        session.add(OptionRow(name="half", value="done"))
        session.flush()
        raise LookupError("on purpose")

    first = asyncio.create_task(store.options.set("first", "1"))
    failing = asyncio.create_task(store._database.write(fails))
    last = asyncio.create_task(store.options.set("last", "1"))
    with pytest.raises(LookupError, match="on purpose"):
        await failing
    await asyncio.gather(first, last)
    assert [await store.options.get(name) for name in ("first", "half", "last")] == ["1", None, "1"]
    assert store.exchanges.health() is None


def test_an_event_loop_that_ends_first_loses_nothing(sqlite_store: Store) -> None:
    exchange = an_exchange()

    async def record() -> None:
        sqlite_store.exchanges.record(exchange)

    async def read() -> None:
        assert await sqlite_store.exchanges.get(exchange.id) == exchange

    asyncio.run(record())
    asyncio.run(sqlite_store.options.set("any", "thing"))  # written after it
    asyncio.run(read())


async def test_a_search_through_too_many_rows_is_given_up(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(url, [an_exchange("x" * 2000, queued_at=NOON + timedelta(seconds=number)) for number in range(3000)])
    rows = ExchangeFilter(text="zz", since=NOON)  # so few that the index is not asked
    assert (await store.exchanges.search(rows)).items == []
    monkeypatch.setattr(database, "SEARCH_LIMIT_S", 0.001)
    with pytest.raises(SearchTooSlow, match="choose a shorter time"):
        await store.exchanges.search(rows)
    monkeypatch.undo()
    assert len((await store.exchanges.search(ExchangeFilter(text="xx"))).items) == 50


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    with small_disk_at(folder, megabytes=4) as disk:
        yield disk


async def test_a_full_disk_loses_nothing_and_is_over_by_itself(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(f"sqlite:///{small_disk / 'qdesk.db'}")
    store.open()
    before = an_exchange("before")
    await store.exchanges.record(before)
    ballast = small_disk / "ballast"
    fill_up(ballast)

    exchanges = [an_exchange(f"number {number}", "answer " * 3000) for number in range(30)]
    futures = [store.exchanges.record(exchange) for exchange in exchanges]
    await until(lambda: store.exchanges.health() is not None)
    assert store.exchanges.health() in ("The disk is full.", "The disk reports an error, or is full.")
    assert await store.exchanges.get(before.id) == before
    monkeypatch.setattr(database, "WRITE_PATIENCE_S", 0.1)
    with pytest.raises(StorageUnavailable, match="disk"):
        await store.users.create("ada", "hash", "staff")

    ballast.unlink()
    async with asyncio.timeout(60):
        await asyncio.gather(*futures)
    assert store.exchanges.health() is None
    for exchange in exchanges:
        assert await store.exchanges.get(exchange.id) == exchange
    assert await store.users.count() == 0
    store.close()
    with sqlite3.connect(small_disk / "qdesk.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


async def test_a_full_disk_stays_known_while_nothing_is_queued(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service that refuses requests while the log is in trouble writes nothing; the store must find out itself."""
    store = Store(f"sqlite:///{small_disk / 'qdesk.db'}")
    store.open()
    ballast = small_disk / "ballast"
    fill_up(ballast)
    log: list[str] = []
    sink = logger.add(lambda message: log.append(message.record["message"]), level="INFO")
    monkeypatch.setattr(database, "WRITE_PATIENCE_S", 0.1)
    monkeypatch.setattr(writer, "LAST_RETRY_S", 0.1)
    with pytest.raises(StorageUnavailable, match="disk"):
        await store.audit.add("ada", "review.open", detail="x" * 200_000)
    await asyncio.sleep(1)  # ten more attempts with nothing queued
    assert store.exchanges.health() is not None
    assert "writing to the database works again" not in log
    ballast.unlink()
    await until(lambda: store.exchanges.health() is None)
    logger.remove(sink)
    assert log.count("writing to the database works again") == 1
    assert (await store.audit.list()).items == []
    store.close()


async def test_closing_a_database_in_trouble_comes_to_an_end(
    sqlite_store: Store, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("storage.writer.CLOSE_PATIENCE_S", 0.1)
    with locked(file):
        future = sqlite_store.exchanges.record(an_exchange())
        await until(lambda: sqlite_store.exchanges.health() == LOCKED)
        await asyncio.to_thread(sqlite_store.close)
    with pytest.raises(StorageUnavailable, match="locked"):
        await future
