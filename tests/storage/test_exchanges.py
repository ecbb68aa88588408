import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from engine.types import Message, Sampling, Status
from storage import Store
from storage.records import ExchangeFilter
from tests import postgresql
from tests.storage.making import NOON, a_person, an_exchange, fill


async def test_every_field_of_an_exchange_comes_back(store: Store) -> None:
    ada = await a_person(store)
    plan = await store.conversations.create(ada.id)
    full = an_exchange(
        person=ada.id,
        conversation_id=plan.id,
        parent_id="f" * 32,
        error="It went wrong.",
        status=Status.FAILED,
        sampling=Sampling(temperature=0, top_p=0.5, top_k=0, seed=2**63 - 1, stop=("\n", "结束"), ignore_eos=True),
    )
    bare = an_exchange(started_at=None, first_token_at=None, finished_at=None, status=Status.QUEUED, answer="")
    for exchange in (full, bare):
        await store.exchanges.record(exchange)
        assert await store.exchanges.get(exchange.id) == exchange
    assert await store.exchanges.get("0" * 32) is None


async def test_a_row_follows_its_answer(store: Store) -> None:
    asked = an_exchange(status=Status.QUEUED, answer="", started_at=None, first_token_at=None, finished_at=None)
    running = replace(asked, status=Status.RUNNING, started_at=NOON, answer="A write")
    running = replace(
        running, model="another", quantization="none", sampling=Sampling(max_tokens=5)
    )  # loaded meanwhile
    done = replace(running, status=Status.DONE, answer="A write-ahead log.", finished_at=NOON)
    for snapshot in (asked, running, done):
        await store.exchanges.record(snapshot)
        assert await store.exchanges.get(asked.id) == snapshot
    assert len((await store.exchanges.search(ExchangeFilter())).items) == 1


@pytest.mark.parametrize(
    "text", ["nul \0 byte", "half \ud83d emoji", "\udc00", "'; DROP TABLE users; --", "\u202e", "🙂" * 9]
)
async def test_no_text_keeps_an_exchange_from_being_written(store: Store, text: str) -> None:
    exchange = an_exchange(messages=(Message("user", text),), answer=text, error=text)
    await store.exchanges.record(exchange)
    kept = await store.exchanges.get(exchange.id)
    assert kept is not None
    assert kept.answer == text.replace("\0", "\ufffd").replace("\ud83d", "\ufffd").replace("\udc00", "\ufffd")
    assert await store.users.count() == 0


async def test_a_refused_exchange_fails_alone(store: Store) -> None:
    good = [an_exchange(f"number {number}") for number in range(5)]
    bad = an_exchange(person="0" * 32)  # nobody's id
    futures = [store.exchanges.record(exchange) for exchange in [*good[:2], bad, *good[2:]]]
    with pytest.raises(sa.exc.IntegrityError):
        await futures[2]
    for exchange in good:
        assert await store.exchanges.get(exchange.id) == exchange
    assert store.exchanges.health() is None


async def test_a_list_shows_who_asked_with_beginnings_and_times(store: Store) -> None:
    ada = await a_person(store)
    await store.exchanges.record(an_exchange("p" * 500, "a" * 500, person=ada.id))
    await store.exchanges.record(
        an_exchange(source="api", started_at=None, first_token_at=None, finished_at=None, status=Status.QUEUED)
    )
    rows = (await store.exchanges.search(ExchangeFilter())).items
    by_key = {row.source: row for row in rows}
    line = by_key["page"]
    assert (line.user_name, line.prompt, line.answer, line.model) == ("ada", "p" * 200, "a" * 200, "Qwen2-7B-Instruct")
    assert (line.queue_s, line.ttft_s, line.total_s) == (1.0, 1.5, 4.0)
    assert (line.prompt_tokens, line.completion_tokens, line.status) == (20, 6, Status.DONE)
    waiting = by_key["api"]
    assert (waiting.user_name, waiting.queue_s, waiting.ttft_s, waiting.total_s) == ("", None, None, None)


async def test_every_filter_narrows(store: Store) -> None:
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    exchanges = {
        "ada": an_exchange("ada asks", person=ada.id),
        "bob": an_exchange("bob asks", person=bob.id, source="api", queued_at=NOON + timedelta(hours=1)),
        "key": an_exchange("nobody asks", status=Status.STOPPED, queued_at=NOON + timedelta(hours=2)),
    }
    for exchange in exchanges.values():
        await store.exchanges.record(exchange)

    async def found(filter: ExchangeFilter) -> list[str]:
        names = {exchange.id: name for name, exchange in exchanges.items()}
        return [names[row.id] for row in (await store.exchanges.search(filter)).items]

    assert await found(ExchangeFilter()) == ["key", "bob", "ada"]
    assert await found(ExchangeFilter(person=bob.id)) == ["bob"]
    assert await found(ExchangeFilter(person="")) == ["key"]
    assert await found(ExchangeFilter(source="page")) == ["key", "ada"]
    assert await found(ExchangeFilter(status=Status.DONE)) == ["bob", "ada"]
    assert await found(ExchangeFilter(since=NOON + timedelta(hours=1))) == ["key", "bob"]
    assert await found(ExchangeFilter(until=NOON + timedelta(hours=1))) == ["ada"]
    assert await found(ExchangeFilter(text="asks", status=Status.DONE, until=NOON + timedelta(hours=2))) == [
        "bob",
        "ada",
    ]
    assert await found(ExchangeFilter(text="asks", person=ada.id, source="api")) == []


@pytest.fixture(params=["Asia/Shanghai", "America/Los_Angeles"])
def time_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield request.param
    del os.environ["TZ"]
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


async def test_times_are_utc_wherever_the_server_stands(store: Store, time_zone: str) -> None:
    """The night in which summer time ends has one hour twice; each instant stays itself."""
    nights = [datetime(2026, 11, 1, hour, 30, tzinfo=UTC) for hour in (7, 8, 9, 10)]
    for at in nights:
        local = at.astimezone()  # what a face in that zone may hand in
        await store.exchanges.record(an_exchange(queued_at=local))
    rows = (await store.exchanges.search(ExchangeFilter(since=nights[1].astimezone(), until=nights[3]))).items
    assert [row.queued_at for row in rows] == [nights[2], nights[1]]
    assert all(row.queued_at.utcoffset() == timedelta(0) for row in rows)


async def test_a_time_without_zone_is_refused(store: Store) -> None:
    with pytest.raises(sa.exc.StatementError, match="timezone"):
        await store.exchanges.record(an_exchange(queued_at=datetime(2026, 5, 4, 12)))


async def test_usage_counts_requests_and_tokens_by_person(store: Store) -> None:
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    for person, tokens, hour in ((ada, 10, 0), (ada, 20, 1), (bob, 5, 1), (None, 99, 1)):
        at = NOON + timedelta(hours=hour)
        person_id = person.id if person else None
        await store.exchanges.record(an_exchange(person=person_id, completion_tokens=tokens, queued_at=at))
    assert await store.exchanges.usage(NOON) == {ada.id: (2, 30), bob.id: (1, 5)}
    assert await store.exchanges.usage(NOON + timedelta(hours=1)) == {ada.id: (1, 20), bob.id: (1, 5)}
    assert await store.exchanges.usage(NOON + timedelta(days=1)) == {}


@pytest.mark.skipif(not postgresql.there_is_one(), reason=postgresql.MISSING)
async def test_what_is_deleted_while_a_list_is_read_is_left_out() -> None:
    """Each statement sees PostgreSQL as it is at its moment: first the numbers, then their rows."""
    url = postgresql.migrated()
    fill(url, [an_exchange(text, queued_at=NOON + timedelta(hours=n)) for n, text in enumerate("abc")])
    store = Store(url)
    store.open()
    beside = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)

    def delete_newest(connection: object, cursor: object, statement: str, *_: object) -> None:
        if "exchanges.number IN" in statement:
            with beside.connect() as another:
                another.exec_driver_sql("DELETE FROM exchanges WHERE number = (SELECT max(number) FROM exchanges)")

    sa.event.listen(sa.Engine, "before_cursor_execute", delete_newest)
    try:
        assert [row.prompt for row in (await store.exchanges.search(ExchangeFilter())).items] == ["b", "a"]
        assert [one.prompt for one in (await store.exchanges.read(ExchangeFilter())).items] == ["a"]
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", delete_newest)
        store.close()
