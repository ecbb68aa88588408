"""The review page's filters, to the address and back, and as what the store is asked for."""

from datetime import UTC, date, datetime, timedelta, timezone
from urllib.parse import parse_qsl
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.types import ExchangeFilter, Status
from ui.components.review.query import FIXED_KEY, LISTS, Query, reader_zone

SHANGHAI = ZoneInfo("Asia/Shanghai")
NOW = datetime(2026, 11, 29, 17, 30, tzinfo=UTC)  # half past one of the 30th in Shanghai

alike = st.builds(Query, like=st.just("1" * 32), open=st.sampled_from(["", "0" * 32]))
filtered = st.builds(
    Query,
    person=st.sampled_from(["", "ada", "王 小明", "a&b=c#%"]),
    span=st.sampled_from(["", "today", "7d", "30d"]),
    status=st.none() | st.sampled_from(Status),
    source=st.sampled_from([None, "page", "api", "review"]),
    list=st.sampled_from(["", *LISTS]),
    model=st.sampled_from(["", "Qwen2-7B-Instruct"]),
    rating=st.sampled_from(["", "up", "down"]),
    label=st.sampled_from(["", "语气 & tone"]),
    text=st.text(max_size=50).map(lambda text: text.replace("\0", "").strip()),
    open=st.sampled_from(["", "0" * 32]),
)


queries = st.one_of(alike, filtered).filter(lambda query: (query.list, query.rating) != ("down", "up"))


@given(queries)
def test_every_query_survives_its_address(query: Query) -> None:
    fields = dict(parse_qsl(query.address()))
    assert Query.parse(fields) == (query, ())


def test_days_stand_in_the_address_and_come_in_order() -> None:
    query, ignored = Query.parse({"from": "2026-11-20", "to": "2026-11-03"})
    assert query.address() == "from=2026-11-03&to=2026-11-20"
    assert (query.first, query.last, ignored) == (date(2026, 11, 3), date(2026, 11, 20), ())


def test_what_makes_no_sense_is_named_and_left_out() -> None:
    query, ignored = Query.parse(
        {
            "status": "broken",
            "source": "fax",
            "time": "ever",
            "from": "2026-02-31",
            "open": "../x",
            "text": "好",
            "x": "y",
        }
    )
    assert query == Query(text="好")
    assert ignored == ("time", "from", "status", "source", "open")


def test_a_rating_that_contradicts_the_list_is_named_and_left_out() -> None:
    assert Query.parse({"list": "down", "rating": "up"}) == (Query(list="down"), ("rating",))
    assert Query.parse({"list": "cut", "rating": "up"}) == (Query(list="cut", rating="up"), ())


def test_others_like_an_exchange_are_asked_for_alone() -> None:
    query, ignored = Query.parse({"like": "1", "open": "2", "person": "ada", "time": "7d", "from": "2026-11-01"})
    assert (query, ignored) == (Query(like="1", open="2"), ("person", "time", "from"))


@pytest.mark.parametrize("bad", [None, 3, ["a"], {"a": 1}])
def test_fields_that_are_not_text_are_empty(bad: object) -> None:
    assert Query.parse(dict.fromkeys(["person", "text", "status", "open", "from"], bad)) == (Query(), ())


def test_text_that_no_address_can_carry_is_mended() -> None:
    query, _ = Query.parse({"text": " a\0b\ud800 "})
    assert query.text == "ab?"
    assert query.address() == "text=ab%3F"


def test_today_is_the_readers_today() -> None:
    midnight_in_shanghai = datetime(2026, 11, 29, 16, tzinfo=UTC)
    assert Query(span="today").bounds(NOW, SHANGHAI) == (midnight_in_shanghai, None)
    assert Query(span="today").bounds(NOW, UTC) == (datetime(2026, 11, 29, tzinfo=UTC), None)


def test_seven_days_are_today_and_six_before() -> None:
    since, _ = Query(span="7d").bounds(NOW, UTC)
    assert since == datetime(2026, 11, 23, tzinfo=UTC)


def test_the_last_day_is_included() -> None:
    query = Query(first=date(2026, 11, 1), last=date(2026, 11, 1))
    since, until = query.bounds(NOW, SHANGHAI)
    assert since == datetime(2026, 10, 31, 16, tzinfo=UTC)
    assert until == datetime(2026, 11, 1, 16, tzinfo=UTC)


def test_a_day_on_which_the_clocks_change_has_its_own_length() -> None:
    query = Query(first=date(2026, 10, 25), last=date(2026, 10, 25))
    since, until = query.bounds(NOW, ZoneInfo("Europe/Berlin"))
    assert since is not None
    assert until is not None
    assert until - since == timedelta(hours=25)


def test_the_filter_carries_everything() -> None:
    query = Query(person="ada", span="today", status=Status.FAILED, source="api", text="天气")
    filter = query.filter("id of ada", "id of rita", NOW, UTC)
    assert (filter.person, filter.status, filter.source, filter.text) == ("id of ada", Status.FAILED, "api", "天气")
    assert filter.since == datetime(2026, 11, 29, tzinfo=UTC)


def test_the_readers_zone_is_named_or_counted() -> None:
    assert reader_zone("Asia/Shanghai", 480) == SHANGHAI
    assert reader_zone("Mars/Olympus", 90) == timezone(timedelta(minutes=90))
    assert reader_zone("../../etc/passwd", "x") is UTC
    assert reader_zone(None, 100_000) is UTC


def test_a_name_means_its_account_and_the_fixed_key_nobodys_exchanges() -> None:
    assert Query().asker(None) is None
    assert Query(person="ada").asker("id of ada") == "id of ada"
    assert Query(person=FIXED_KEY).asker(None) == ""
    assert Query(person=FIXED_KEY).asker("id of somebody called so") == "id of somebody called so"
    with pytest.raises(LookupError, match="nobody"):
        Query(person="nobody").asker(None)


def test_the_lists_are_filters_of_the_reader() -> None:
    def filter(**fields: object) -> ExchangeFilter:
        return Query.parse(fields)[0].filter(None, "id of rita", NOW, UTC)

    assert filter(list="down") == filter(rating="down") == ExchangeFilter(rating=-1)
    assert filter(list="mine", label="tone") == ExchangeFilter(assignee="id of rita", label="tone")
    assert filter(list="open", model="m") == ExchangeFilter(reviewed=False, model="m")
    assert filter(list="cut") == ExchangeFilter(cut_off=True)
    assert filter(list="waits") == ExchangeFilter(long_wait=True)
    assert filter(list="nonsense") == ExchangeFilter()
