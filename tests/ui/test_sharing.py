"""What several processes on one PostgreSQL have in common of what main builds, each played by a desk of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from engine.job import Job
from engine.monitor import Monitor
from engine.service import ChatService
from engine.settings import Settings
from engine.shared_places import SharedPlaces
from engine.types import Status
from storage import Store
from storage.joining import Joining
from storage.records import ExchangeRow
from tests import postgresql
from tests.databases import SECRET
from tests.engine.kit import UnrulyBackend, question, running, until
from tests.server import eventually
from ui.api.errors import ApiError
from ui.api.rate import RateLimit
from ui.auth import Auth, Caller
from ui.banner import Banner, keep_banner
from ui.bus import Bus
from ui.cluster import Sharing
from ui.desk import Desk
from ui.elsewhere import cancel, elsewhere, ended, followed, move_to_front, overrule, stop
from ui.erasing import StillAnswering, erase
from ui.limits import LiveLimits, keep_limits, limits_now, limits_of, reset_limits
from ui.sign_in.failing import SignInFailed
from ui.steering import set_intake
from ui.tries import TooManyTries

pytestmark = pytest.mark.skipif(not postgresql.there_is_one(), reason=postgresql.MISSING)


def desk(url: str, name: str) -> Desk:
    settings = Settings(session_secret=SECRET, backend="scripted", database_url=url)
    store = Store(url)
    store.open(joining=Joining(name, "ours", heartbeat_s=1))
    assert store.cluster
    service = ChatService(settings, UnrulyBackend(), store.exchanges, places=SharedPlaces(store.cluster))
    service.intake.loaded()
    bus = Bus(store.cluster.tell)
    return Desk(settings, service, store, Auth(store, settings, bus=bus), Monitor(service), bus)


@pytest.fixture
async def two() -> AsyncIterator[tuple[Desk, Desk]]:
    url = postgresql.migrated()
    desks = desk(url, "one:8080"), desk(url, "two:8080")
    sharing = [Sharing(one) for one in desks]
    for each in sharing:
        each.start()
    yield desks
    for each in sharing:
        each.stop()
    for one in desks:
        one.auth.passwords.close()
        await asyncio.to_thread(one.store.close)


async def soon(condition: Callable[[], object]) -> None:
    await asyncio.to_thread(eventually, condition)


async def test_what_an_administrator_sets_holds_in_all_processes(two: tuple[Desk, Desk]) -> None:
    one, other = two
    limits = LiveLimits(concurrent=2, waiting=7, per_person=1, max_new_tokens=99)
    await keep_limits(one, limits)
    await soon(lambda: limits_now(other.service) == limits)
    await reset_limits(other)
    await soon(lambda: limits_now(one.service) == limits_of(one.settings))

    await set_intake(one, "paused", "Back at noon.")
    await soon(lambda: (other.service.intake.mode, other.service.intake.note) == ("paused", "Back at noon."))
    await set_intake(other, "open")
    await soon(lambda: one.service.intake.mode == "open")
    await set_intake(one, "draining")  # in order to restart this one: the others go on
    await set_intake(other, "open")

    words = Banner("Hello", until=datetime.now(UTC) + timedelta(hours=1))
    await keep_banner(one, words)
    await soon(lambda: other.board.now == words)
    await keep_banner(other, None)
    await soon(lambda: one.board.now is None)
    assert one.service.intake.mode == "draining"

    ada = await one.store.users.create("ada", "hash", "staff")
    assert ada
    await one.store.users.set_max_requests(ada.id, 5)
    await soon(lambda: other.service.gate.own_limits == {ada.id: 5})


async def test_a_session_that_ends_in_one_ends_in_all_and_pages_are_told(two: tuple[Desk, Desk]) -> None:
    one, other = two
    ada = await one.store.users.create("ada", "hash", "staff")
    assert ada
    token = await one.auth.start_session(ada, "")
    here, there = await one.auth.visitor(token), await other.auth.visitor(token)
    assert here
    assert there
    told = asyncio.Event()
    other.auth.on_revoked(there.session_id, told.set)
    await one.auth.sign_out(here.session_id)
    async with asyncio.timeout(20):
        await told.wait()
    assert await other.auth.visitor(token) is None

    token = await other.auth.start_session(ada, "")
    assert await one.auth.visitor(token)
    assert await other.store.users.set_disabled(ada.id, True)
    disabled = asyncio.Event()
    one.auth.on_disabled = lambda _: disabled.set()
    async with asyncio.timeout(20):
        await disabled.wait()


async def test_wrong_passwords_and_calls_count_over_all_processes(two: tuple[Desk, Desk]) -> None:
    for number in range(5):
        with pytest.raises(SignInFailed):
            await two[number % 2].auth.door.by_password("nobody", "wrong", "10.0.0.1")

    async def refused(desk: Desk) -> bool:
        try:
            await desk.auth.door.by_password("nobody", "wrong", "10.0.0.1")
        except TooManyTries:
            return True
        except SignInFailed:
            return False
        return False

    for each in two:  # a try more or less at one of them, until it has heard of those at the other
        async with asyncio.timeout(20):
            while not await refused(each):
                pass

    ada = await two[0].store.users.create("ada", "hash", "staff")
    caller, rates = Caller(ada), [RateLimit("2/minute", each.bus) for each in two]
    rates[0].take(caller)
    rates[1].take(caller)
    await soon(lambda: full(rates[0], caller) and full(rates[1], caller))


def full(rate: RateLimit, caller: Caller) -> bool:
    try:
        rate.take(caller)
    except ApiError:
        return True
    return False


async def test_all_print_one_set_up_link_and_make_one_first_account(two: tuple[Desk, Desk]) -> None:
    setups = [each.auth.setup for each in two]
    await asyncio.gather(*(setup.open("") for setup in setups))
    token = setups[0].token
    assert token
    assert [setup.opens(token) for setup in setups] == [True, True]
    made = await asyncio.gather(*(setup.make("root", "a long password") for setup in setups))
    assert [user.name for user in made if user] == ["root"]


async def begun(desk: Desk, person: str) -> Job:
    """A question that goes on being answered, and whose row says so."""
    job = await desk.service.submit(question("stand still", person, source="page"))
    await until(job, running)
    await desk.store.exchanges.record(job.exchange())
    return job


async def test_what_one_answers_the_others_list_follow_and_end(two: tuple[Desk, Desk]) -> None:
    one, other = two
    ada = await one.store.users.create("ada", "hash", "staff")
    assert ada
    job = await begun(one, ada.id)
    (row,) = await elsewhere(other)
    assert (row.id, row.user_name, row.status) == (job.id, "ada", Status.RUNNING)
    assert await elsewhere(other, ada.id) == [row]
    assert await elsewhere(other, "somebody else") == []
    assert await elsewhere(one) == []

    read = asyncio.Event()
    job.on_watched = lambda by_somebody: read.set()  # from where an answer that nobody reads is ended
    exchange = await other.store.exchanges.get(job.id)
    assert exchange

    async def follow() -> list[Status]:
        return [newer.status async for newer in followed(other, exchange)]

    following = asyncio.create_task(follow())
    async with asyncio.timeout(20):
        await read.wait()
        stop(other, job.id)
        assert await following == [Status.STOPPED]
    assert job.status is Status.STOPPED

    second = await begun(one, ada.id)
    cancelled = await ended(other, second.id, cancel)
    assert cancelled
    assert (cancelled.status, cancelled.error) == (Status.CANCELLED, None)
    overruled = await ended(other, (await begun(one, ada.id)).id, overrule)
    assert overruled
    assert (overruled.status, overruled.error) == (Status.CANCELLED, "An administrator ended this request.")

    third = await begun(one, ada.id)
    assert await erase(other, ada.id) == 4  # what still ran elsewhere would have been left
    assert third.status is Status.STOPPED


async def test_what_waits_at_one_is_moved_to_the_front_by_the_other(two: tuple[Desk, Desk]) -> None:
    one, other = two
    ada = await one.store.users.create("ada", "hash", "staff")
    assert ada
    limits = LiveLimits(concurrent=1, waiting=7, per_person=5, max_new_tokens=99)
    await keep_limits(one, limits)
    await soon(lambda: limits_now(other.service) == limits)
    runs = await begun(one, ada.id)
    first, last = [await one.service.submit(question("stand still", None)) for _ in range(2)]
    await soon(lambda: positions(other) == {first.id: 0, last.id: 1})

    assert not move_to_front(one, last.id)  # its own are moved by the service
    assert move_to_front(other, last.id)
    await soon(lambda: (last.position, first.position) == (0, 1))
    one.service.stop_job(runs)
    await until(last, running)
    await soon(lambda: positions(other) == {first.id: 0})
    assert not move_to_front(other, last.id)

    for job in (first, last):
        one.service.stop_job(job)
        await job.closed()


def positions(desk: Desk) -> dict[str, int]:
    """Who waits in the whole house, as this one knows it."""
    assert isinstance(desk.service.places, SharedPlaces)
    return desk.service.places.positions()


async def test_nothing_is_erased_while_another_goes_on_answering_and_what_it_is_told_is_told_again(
    two: tuple[Desk, Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    ada = await one.store.users.create("ada", "hash", "staff")
    assert ada
    job = await begun(one, ada.id)
    unheard = replace(other, bus=Bus(lambda topic, text: None))
    with monkeypatch.context() as hasty:
        hasty.setattr("ui.elsewhere.PATIENCE_S", 0.0)
        with pytest.raises(StillAnswering):
            await erase(unheard, ada.id)
    assert not job.status.final
    assert await one.store.exchanges.get(job.id)

    told: list[str] = []

    def send(topic: str, text: str) -> None:
        if told:  # the first is lost
            other.bus.tell(topic, text)
        told.append(topic)

    monkeypatch.setattr("ui.elsewhere.TELL_EVERY_S", 0.0)
    assert await erase(replace(other, bus=Bus(send)), ada.id) == 1
    assert job.status is Status.STOPPED


async def test_what_ends_here_while_the_database_is_asked_is_not_taken_for_anothers(
    two: tuple[Desk, Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = two
    ada = await one.store.users.create("ada", "hash", "staff")
    assert ada
    job = await begun(one, ada.id)
    ask = one.store.exchanges.unfinished

    async def unfinished(person: str | None = None) -> list[ExchangeRow]:
        rows = await ask(person)
        assert [row.id for row in rows] == [job.id]
        one.service.stop_job(job)
        await job.closed()
        return rows

    monkeypatch.setattr(one.store.exchanges, "unfinished", unfinished)
    assert await elsewhere(one) == []
