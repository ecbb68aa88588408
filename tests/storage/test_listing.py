"""The two ways through a large log give the same lists, page by page, and SQLite goes the way that was meant."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
import sqlalchemy as sa
from sqlmodel import Session

import storage.listing
from engine.types import Exchange, ExchangeFilter, Status
from storage import Store
from tests.storage.making import NOON, a_person, an_exchange, fill

WORDS = ["天气", "天", "weather", "we", "天气 weather", "气预", "报表", "x"]


def exchanges(person: str) -> list[Exchange]:
    texts = ["今天天气怎么样", "weather report 天气", "Weather", "月底报表", "just text", "预报天气"]
    return [
        an_exchange(
            f"{texts[number % 6]} {number}",
            texts[number % 5],
            person=person if number % 7 == 0 else None,
            status=Status.FAILED if number % 11 == 0 else Status.DONE,
            queued_at=NOON + timedelta(minutes=number),
            model="older" if number < 120 else "newer",
        )
        for number in range(300)
    ]


async def everything(store: Store, filter: ExchangeFilter, limit: int) -> list[str]:
    prompts: list[str] = []
    cursor = None
    while True:
        page = await store.exchanges.search(filter, limit=limit, cursor=cursor)
        prompts += [row.prompt for row in page.items]
        if (cursor := page.next) is None:
            return prompts


@pytest.mark.parametrize("text", WORDS)
async def test_both_ways_find_the_same_on_every_page(
    sqlite_store: Store, file: object, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = await a_person(sqlite_store)
    fill(f"sqlite:///{file}", exchanges(ada.id))
    middle = NOON + timedelta(minutes=150)
    filters = [
        ExchangeFilter(text=text),
        ExchangeFilter(text=text, person=ada.id),
        ExchangeFilter(text=text, status=Status.FAILED, since=middle),
        ExchangeFilter(text=text, until=middle),
        ExchangeFilter(text=text, since=middle + timedelta(days=9)),
        ExchangeFilter(text=text, model="older", source="page", since=NOON + timedelta(minutes=60)),
    ]
    monkeypatch.setattr(storage.listing, "LONG_GONE", 100)
    for filter in filters:
        monkeypatch.setattr(storage.listing, "FEW", 10**6)
        walked = await everything(sqlite_store, replace(filter, until=filter.until or _LATE), 7)
        monkeypatch.setattr(storage.listing, "FEW", -1)
        for most in (10**6, 0):  # sorted by time, or as they were recorded
            monkeypatch.setattr(storage.listing, "SORTED", most)
            assert await everything(sqlite_store, filter, 7) == walked, filter


_LATE = NOON + timedelta(days=99)  # a condition, so that the few rows are counted at all


async def test_snippets_show_the_hit_also_far_inside(sqlite_store: Store) -> None:
    await sqlite_store.exchanges.record(an_exchange("question", "x" * 500 + " needle " + "y" * 500))
    (row,) = (await sqlite_store.exchanges.search(ExchangeFilter(text="needle"))).items
    assert "needle" in row.snippet
    assert len(row.snippet) < 100
    (row,) = (await sqlite_store.exchanges.search(ExchangeFilter())).items
    assert row.snippet == ""


async def test_whole_exchanges_are_read_piece_by_piece(sqlite_store: Store, file: object) -> None:
    made = exchanges((await a_person(sqlite_store)).id)
    fill(f"sqlite:///{file}", made)
    read, cursor = [], None
    while True:
        page = await sqlite_store.exchanges.read(ExchangeFilter(text="weather"), limit=13, cursor=cursor)
        read += page.items
        if (cursor := page.next) is None:
            break
    assert all(first.queued_at > second.queued_at for first, second in pairwise(read))
    assert {one.id for one in read} == {one.id for one in made if "weather" in (one.prompt + one.answer).lower()}


@pytest.mark.parametrize(
    ("filter", "index"),
    [
        (ExchangeFilter(), "COVERING INDEX ix_exchanges_log"),
        (ExchangeFilter(cut_off=True), "INDEX ix_exchanges_cut_off"),
        (ExchangeFilter(model="another", source="api"), "COVERING INDEX ix_exchanges_log"),  # which many have
        (ExchangeFilter(long_wait=True), "INDEX ix_exchanges_long_wait"),
        (ExchangeFilter(rating=-1), "COVERING INDEX ix_exchanges_log"),  # which many have
        (ExchangeFilter(label="tone", rating=1), "COVERING INDEX ix_exchanges_log"),
        (ExchangeFilter(status=Status.FAILED), "INDEX ix_exchanges_status_queued_at_id"),
        (ExchangeFilter(person="p"), "INDEX ix_exchanges_person_queued_at_id"),
        (ExchangeFilter(text="weather"), "SCAN exchanges_search VIRTUAL TABLE"),
        (ExchangeFilter(text="weather", status=Status.FAILED), "exchanges USING INTEGER PRIMARY KEY"),
    ],
)
def test_lists_are_answered_by_the_index_that_is_meant(
    sqlite_store: Store, file: object, filter: ExchangeFilter, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none of them sorts: the newest rows come first by themselves."""
    monkeypatch.setattr(storage.listing, "FEW", -1)
    monkeypatch.setattr(storage.listing, "SORTED", -1)
    found = plans(file, filter)
    meant = [plan for plan in found if index in plan]
    assert meant, found
    assert "TEMP B-TREE" not in meant[0], found


RAREST = {"person": 43, "status": 28, "model": 3, "source": 0}  # how many of the 300 have it


@pytest.mark.parametrize("without", [(), ("source",), ("source", "model"), ("source", "model", "status")])
@pytest.mark.parametrize("text", ["", "weather"])
async def test_the_rarest_of_the_filters_leads(
    sqlite_store: Store, file: object, without: tuple[str, ...], text: str
) -> None:
    """So a text beside a source that nobody used is looked for nowhere."""
    ada = await a_person(sqlite_store)
    made = [replace(one, model="another") if at % 100 == 0 else one for at, one in enumerate(exchanges(ada.id))]
    fill(f"sqlite:///{file}", made)
    asked = {"person": ada.id, "status": Status.FAILED, "model": "another", "source": "import"}
    left = {name: value for name, value in asked.items() if name not in without}
    filter = ExchangeFilter(**left, text=text)  # type: ignore[arg-type]  # by name
    rarest, way = min(left, key=RAREST.__getitem__), plans(file, filter)[len(left)]  # once each has been counted
    assert f"INDEX ix_exchanges_{rarest}_queued_at_id ({rarest}=?" in way
    expected = [
        one.prompt
        for one in reversed(made)
        if all(getattr(one, name) == value for name, value in left.items())
        and text in (one.prompt + one.answer).lower()
    ]
    assert await everything(sqlite_store, filter, 7) == expected


def plans(file: object, filter: ExchangeFilter) -> list[str]:
    """How SQLite goes about each statement by which the first fifty are found."""
    engine = sa.create_engine(f"sqlite:///{file}", poolclass=sa.NullPool)
    found: list[str] = []

    @sa.event.listens_for(engine, "before_cursor_execute", retval=True)
    def explained(connection: sa.Connection, cursor: object, statement: str, values: object, *_: object) -> object:
        raw = connection.connection.driver_connection
        assert raw is not None
        rows = raw.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
        found.append(" | ".join(str(row[3]) for row in rows))
        return statement, values

    with Session(engine) as session:
        storage.listing.Listing(session, filter, indexed=True).piece(50, None)
    return found


async def test_hits_come_by_their_time_whatever_order_they_were_recorded_in(sqlite_store: Store, file: object) -> None:
    """As where a log is brought in from elsewhere."""
    fill(f"sqlite:///{file}", reversed_ := list(reversed(exchanges((await a_person(sqlite_store)).id))))
    expected = [one.prompt for one in reversed_ if "weather" in (one.prompt + one.answer).lower()]
    assert await everything(sqlite_store, ExchangeFilter(text="weather"), 7) == expected
