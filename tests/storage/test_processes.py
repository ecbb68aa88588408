"""Several processes on one PostgreSQL, each played by a store of its own: who lives, what is told, shared places."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from loguru import logger

from engine.errors import QueueFull, UserLimit
from engine.gate import Limits, Ticket
from engine.settings import Settings
from engine.shared_places import SharedPlaces
from engine.types import Status
from storage import Store
from storage.cluster import DEAD_AFTER, Cluster
from storage.errors import StorageError
from storage.joining import Joining
from tests import postgresql
from tests.storage.making import an_exchange

pytestmark = pytest.mark.skipif(not postgresql.there_is_one(), reason=postgresql.MISSING)

BEAT_S = 60.0  # between two signs of life: nobody is late here, however busy the machine, whom a test does not make so


class Process:
    """A store with its places, as a process has them."""

    def __init__(self, url: str, name: str, secret: str = "ours") -> None:
        self.store = Store(url)
        self.store.open(joining=Joining(name, secret, BEAT_S))
        assert self.store.cluster
        self.cluster: Cluster = self.store.cluster
        self.places = SharedPlaces(self.cluster)
        self.told: list[tuple[str, str]] = []
        self.changed = asyncio.Event()
        self.places.let_in = lambda admitted: self.changed.set()

    async def listen(self) -> None:
        loop = asyncio.get_running_loop()

        def hear(topic: str, text: str) -> None:
            self.told.append((topic, text))
            if topic in ("places", "all"):
                self.places.changed()
            self.changed.set()

        self.cluster.listen(lambda topic, text: _called(loop, hear, topic, text))
        await self.until(lambda: self.told)

    async def until(self, condition: Callable[[], object]) -> None:
        """Return once this is so; it is looked at whenever something was heard or changed."""
        async with asyncio.timeout(20):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


def _called(loop: asyncio.AbstractEventLoop, hear: Callable[[str, str], None], topic: str, text: str) -> None:
    loop.call_soon_threadsafe(hear, topic, text)


def test_by_default_a_dead_process_is_noticed_within_half_a_minute() -> None:
    beats = DEAD_AFTER + 1  # those that are missing, and the one at which somebody notices
    assert beats * Settings().heartbeat_s <= 30


@pytest.fixture
def url() -> str:
    return postgresql.migrated()


@pytest.fixture
async def two(url: str) -> AsyncIterator[tuple[Process, Process]]:
    processes = Process(url, "one:8080"), Process(url, "two:8080")
    for process in processes:
        await process.listen()
    yield processes
    for process in processes:
        await asyncio.to_thread(process.store.close)


@contextmanager
def opened(url: str) -> Iterator[Store]:
    """A process that has the database to itself."""
    store = Store(url)
    try:
        store.open()
        yield store
    finally:
        store.close()


def beside(url: str, sql: str) -> None:
    """Do this beside the processes, and be done."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.text(sql))


async def test_two_that_are_the_first_do_not_wait_for_each_other_in_a_circle(two: tuple[Process, Process]) -> None:
    """Both have seen that there are no places yet, and write them."""
    both, said, came = threading.Barrier(2, timeout=20), list[str](), set[int]()

    def meet(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith(("LOCK TABLE", "INSERT INTO places")) and threading.get_ident() not in came:
            came.add(threading.get_ident())
            both.wait()

    for process in two:
        process.places.gate.limits = Limits(concurrent=5, waiting=10, per_person=5)  # without a word in the database
    sa.event.listen(sa.Engine, "before_cursor_execute", meet)
    sink = logger.add(lambda message: said.append(str(message)), level="WARNING")
    try:
        tickets = await asyncio.gather(*(process.places.enter(process.cluster.process) for process in two))
    finally:
        logger.remove(sink)
        sa.event.remove(sa.Engine, "before_cursor_execute", meet)
    assert len(came) == 2
    assert said == []
    one, other = two
    await one.until(lambda: len([*one.places.gate.running, *one.places.gate.order()]) == len(tickets))
    await other.until(lambda: len([*other.places.gate.running, *other.places.gate.order()]) == len(tickets))


async def test_one_that_needs_the_database_alone_is_refused_and_refuses(url: str) -> None:
    one = Process(url, "one:8080")
    with pytest.raises(StorageError, match="Another Qdesk is running on this database"), opened(url):
        pass
    with pytest.raises(StorageError, match="one:8080 on this database has another session secret"):
        Process(url, "two:8080", secret="theirs")
    await asyncio.to_thread(one.store.close)
    with opened(url), pytest.raises(StorageError, match="with the engine inside"):
        Process(url, "one:8080")


async def test_three_that_start_at_once_on_an_empty_database_make_it_once() -> None:
    empty = postgresql.new_database()
    started = await asyncio.gather(*(asyncio.to_thread(Process, empty, f"{name}:8080") for name in "abc"))
    assert len(await started[0].cluster.beat()) == 3
    for process in started:
        await asyncio.to_thread(process.store.close)


async def test_what_the_dead_left_is_interrupted_and_nothing_else(url: str, two: tuple[Process, Process]) -> None:
    one, other = two
    running, waiting, theirs = (
        an_exchange(status=status, finished_at=None) for status in (Status.RUNNING, Status.QUEUED, Status.RUNNING)
    )
    done = an_exchange()
    for exchange in (running, waiting, done):
        await one.store.exchanges.record(exchange)
    await other.store.exchanges.record(theirs)
    assert len(await other.cluster.beat()) == 2
    beside(
        url, f"update processes set seen_at = seen_at - interval '{DEAD_AFTER * BEAT_S:g} s' where name = 'one:8080'"
    )
    assert [member.name for member in await other.cluster.beat()] == ["two:8080"]

    async def status(id: str) -> Status | None:
        kept = await other.store.exchanges.get(id)
        return kept.status if kept else None

    found = [await status(exchange.id) for exchange in (running, waiting, done, theirs)]
    assert found == [Status.INTERRUPTED, Status.INTERRUPTED, Status.DONE, Status.RUNNING]
    await one.store.exchanges.record(running)  # it was not dead, only late: the log says how things are
    assert await status(running.id) is Status.RUNNING
    assert [member.name for member in await one.cluster.beat()] == ["two:8080", "one:8080"]


async def test_changes_are_heard_by_the_others_and_not_by_oneself(two: tuple[Process, Process]) -> None:
    one, other = two
    ada = await one.store.users.create("ada", "hash", "staff")
    assert ada
    await one.store.options.set("banner", "hello")
    await one.store.users.set_disabled(ada.id, True)
    one.cluster.tell("list", "with more words")
    await other.until(lambda: ("list", "with more words") in other.told)
    assert other.told == [("all", ""), ("banner", ""), ("access", ""), ("list", "with more words")]
    other.cluster.tell("list", "back")
    await one.until(lambda: ("list", "back") in one.told)
    assert ("banner", "") not in one.told


async def test_a_persons_limit_and_the_queues_bound_hold_over_all_processes(two: tuple[Process, Process]) -> None:
    one, other = two
    for process in two:
        process.places.change(Limits(concurrent=1, waiting=2, per_person=2))
    first = await one.places.enter("ada")
    second = await other.places.enter("ada")
    assert (first.admitted_at is not None, second.admitted_at) == (True, None)
    with pytest.raises(UserLimit):
        await one.places.enter("ada")
    await one.places.enter("bob")
    with pytest.raises(QueueFull):
        await other.places.enter("eve")
    await one.until(lambda: one.places.gate.depth == 3)
    assert one.places.by_process() == {one.cluster.process: (1, 1), other.cluster.process: (0, 1)}
    assert (one.places.own(), other.places.own()) == ((1, 1), (0, 1))


async def test_a_place_that_becomes_free_goes_to_whose_turn_it_is_wherever_they_wait(
    two: tuple[Process, Process],
) -> None:
    one, other = two
    for process in two:
        process.places.change(Limits(concurrent=1, waiting=10, per_person=5))
    running = await one.places.enter("ada")
    mine = [await one.places.enter("ada", f"request {n}") for n in range(2)]
    bobs = await other.places.enter("bob", "bob's")
    line = {"request 0": 0, "bob's": 1, "request 1": 2}
    await one.until(lambda: one.places.positions() == line)
    await other.until(lambda: other.places.positions() == line)
    one.places.leave(running)
    await other.until(lambda: mine[0].admitted_at is not None)
    one.places.leave(mine[0])
    await other.until(lambda: bobs.admitted_at is not None)  # before the second of ada, who has had a turn
    assert mine[1].admitted_at is None

    another = await other.places.enter("eve")
    one.places.leave(mine[1])
    one.places.leave(mine[1])  # a second time does nothing
    other.places.leave(bobs)
    await other.until(lambda: another.admitted_at is not None)
    await one.until(lambda: one.places.gate.depth == 1)


async def test_the_dead_hold_no_places_and_the_living_get_theirs_back(two: tuple[Process, Process]) -> None:
    one, other = two
    for process in two:
        process.places.change(Limits(concurrent=1, waiting=10, per_person=5))
    held = await one.places.enter("ada")
    next: Ticket = await other.places.enter("bob")
    other.places.keep_only({other.cluster.process})
    await other.until(lambda: next.admitted_at is not None)
    await one.until(lambda: len(one.places.gate.running) == 2)  # it was not dead: what ran goes on running
    assert held in one.places.gate.running
    one.places.leave(held)
    await other.until(lambda: other.places.gate.depth == 1)


async def test_one_that_holds_lets_nobody_in_anywhere_until_it_lets_go_or_dies(two: tuple[Process, Process]) -> None:
    one, other = two
    for process in two:
        process.places.change(Limits(concurrent=5, waiting=10, per_person=5))
    one.places.hold(True)
    await other.until(lambda: other.places.gate.held)
    waits = await other.places.enter("ada")
    assert waits.admitted_at is None
    one.places.hold(False)
    await other.until(lambda: waits.admitted_at is not None)
    one.places.hold(True)
    await other.until(lambda: other.places.gate.held)
    other.places.keep_only({other.cluster.process})
    await other.until(lambda: not other.places.gate.held)


async def test_whoever_is_moved_to_the_front_is_next_in_the_whole_house(two: tuple[Process, Process]) -> None:
    one, other = two
    for process in two:
        process.places.change(Limits(concurrent=1, waiting=10, per_person=5))
    running = await one.places.enter("ada")
    first, last = await one.places.enter("bob"), await other.places.enter("eve")
    other.places.move_to_front(last)
    await one.until(lambda: next(one.places.gate.order()).person == "eve")
    one.places.leave(running)
    await other.until(lambda: last.admitted_at is not None)
    assert first.admitted_at is None


async def test_a_first_account_is_offered_by_one_link_for_all(two: tuple[Process, Process]) -> None:
    one, other = two
    words = await asyncio.gather(
        *(process.store.options.once("setup", f"{process.cluster.process}", lambda _: True) for process in two)
    )
    assert words[0] == words[1]
    assert await one.store.options.once("setup", "newer", lambda _: False) == "newer"
    assert await other.store.options.get("setup") == "newer"


async def test_a_database_that_was_away_loses_nobody(url: str, two: tuple[Process, Process]) -> None:
    one, other = two
    ticket = await one.places.enter("ada")
    one.told.clear()
    beside(url, "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()")
    await one.until(lambda: ("all", "") in one.told)  # it listens again
    other.cluster.heartbeat_s = 0.0  # so long ago that it was missed is everybody's sign of life, its own too
    assert len(await other.cluster.beat()) == 2  # whoever was cut off itself takes nobody for dead at once
    one.places.leave(ticket)
    await other.until(lambda: other.places.gate.depth == 0)
