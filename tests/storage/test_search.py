"""Searching the log: Chinese words, quoting attacks, ten thousand rows."""

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from engine.types import Status
from storage import Store
from storage.records import ExchangeFilter
from storage.search import MAX_TEXT, snippet
from tests.storage.making import NOON, an_exchange, delete_before, fill

PROMPTS = [
    "今天上海的天气怎么样？",
    "北京天空",
    'He said "stop" and left',
    "100% sure * really",
    "snake_case names",
    "back\\slash and -minus NEAR(x) col:umn",
    "Größe in GPUs",
]


async def found(store: Store, text: str, since: datetime | None = None, until: datetime | None = None) -> list[str]:
    """The prompts that a search finds, oldest first."""
    pages = await store.exchanges.search(ExchangeFilter(text=text, since=since, until=until), limit=1000)
    return [row.prompt for row in reversed(pages.items)]


@pytest.fixture
async def full(store: Store) -> Store:
    for number, prompt in enumerate(PROMPTS):
        await store.exchanges.record(an_exchange(prompt, "-", queued_at=NOON + timedelta(minutes=number)))
    return store


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("天气", [0]),
        ("天", [0, 1]),
        ("上海的", [0]),
        ("上海 天气", [0]),
        ("天气怎么样", [0]),
        ("天气 北京", []),
        ('"stop"', [2]),
        ('"', [2]),
        ("'", []),
        ("*", [3]),
        ("%", [3]),
        ("100%", [3]),
        ("0% s", [3]),
        ("_", [4]),
        ("e_c", [4]),
        ("e_s", []),
        ("\\", [5]),
        ("back\\s", [5]),
        ("AND", [2, 5]),
        ("a AND b", [5]),
        ("OR", []),
        ("NOT", []),
        ("NEAR(x)", [5]),
        ("col:umn", [5]),
        ("-minus", [5]),
        ("prompt:sure", []),
        ('" OR prompt:"sure', []),
        ("gpus", [6]),
        ("gp", [6]),
        ("  ", [0, 1, 2, 3, 4, 5, 6]),
        ("\0", []),
        ("sur\0e", []),
        ("\ud83d", []),
        ("x" * 10_000, []),
        ("a " * 10_000, [2, 3, 4, 5]),
    ],
)
async def test_text_is_found_as_it_is_written(full: Store, text: str, numbers: list[int]) -> None:
    assert await found(full, text) == [PROMPTS[number] for number in numbers]


async def test_words_may_be_spread_over_prompt_and_answer(store: Store) -> None:
    await store.exchanges.record(an_exchange("What is a write-ahead log?", "一种日志"))
    assert len(await found(store, "write 日志")) == 1
    assert len(await found(store, "write 一种日")) == 1
    assert await found(store, "write 数据") == []


async def test_a_running_answer_is_found_and_indexed_once_when_it_is_final(store: Store) -> None:
    running = an_exchange("the question", "", status=Status.RUNNING)
    for piece in ("partial", "partial answer", "partial answer, more"):
        await store.exchanges.record(replace(running, answer=piece))
        assert await found(store, "question") == ["the question"]
        assert await found(store, "partial") == ["the question"]
    await store.exchanges.record(replace(running, answer="another end", status=Status.DONE))
    assert await found(store, "another end") == ["the question"]
    assert await found(store, "partial") == []
    await store.exchanges.record(replace(running, answer="corrected", status=Status.DONE))
    assert await found(store, "corrected") == ["the question"]
    assert await found(store, "another end") == []


async def test_the_index_is_not_written_while_an_answer_runs(sqlite_store: Store, file: object) -> None:
    running = an_exchange("the question", "partial", status=Status.RUNNING)
    await sqlite_store.exchanges.record(running)
    assert indexed(file) == 0
    await sqlite_store.exchanges.record(replace(running, status=Status.DONE))
    assert indexed(file) == 1


async def test_without_a_trigram_index_the_rows_are_searched(file: object) -> None:
    """As on an SQLite that was built without FTS5."""
    store = Store(f"sqlite:///{file}")
    store.open()
    store.close()
    engine = sa.create_engine(f"sqlite:///{file}", poolclass=sa.NullPool)
    with engine.begin() as connection:
        for event in ("insert", "update", "delete"):
            connection.exec_driver_sql(f"DROP TRIGGER exchanges_search_{event}")
        connection.exec_driver_sql("DROP TABLE exchanges_search_terms")
        connection.exec_driver_sql("DROP TABLE exchanges_search")
    store = Store(f"sqlite:///{file}")
    store.open()
    await store.exchanges.record(an_exchange("今天天气怎么样"))
    assert await found(store, "今天天气") == ["今天天气怎么样"]
    assert await found(store, '"天气') == []
    assert await delete_before(store, NOON + timedelta(1)) == 1
    store.close()


async def test_ten_thousand_rows_are_paged_without_gap_or_repeat_and_searched(store: Store, url: str) -> None:
    random_words = random.Random(1)
    exchanges = [
        an_exchange(
            f"question {number} " + "".join(chr(random_words.randint(0x4E00, 0x9FA5)) for _ in range(40)),
            "针尖" if number % 1000 == 7 else "干草",
            queued_at=NOON + timedelta(seconds=number // 3),  # three at the same time: the id decides
        )
        for number in range(10_000)
    ]
    fill(url, exchanges)
    expected = [exchange.id for exchange in sorted(exchanges, key=lambda each: (each.queued_at, each.id), reverse=True)]
    ids, cursor = [], None
    while True:
        piece = await store.exchanges.search(ExchangeFilter(), limit=700, cursor=cursor)
        ids += [row.id for row in piece.items]
        if cursor is None:  # a newcomer moves nothing
            await store.exchanges.record(an_exchange("newcomer", queued_at=NOON + timedelta(days=1)))
        if (cursor := piece.next) is None:
            break
    assert ids == expected

    needles = [exchange.prompt for number, exchange in enumerate(exchanges) if number % 1000 == 7]
    assert await found(store, "针尖") == [prompt[:200] for prompt in needles]
    assert await found(store, "question 1234") == [exchanges[1234].prompt]
    assert await found(store, "question 针尖 9007") == [exchanges[9007].prompt]
    late = exchanges[5000].queued_at
    assert len(await found(store, "针尖", since=late)) == 5
    assert len(await found(store, "针尖", until=late)) == 5


@pytest.mark.parametrize("cursor", ["", "nonsense", "WyJhIiwiYiJd", "W10=", "bnVsbA==", "é", "A" * 9999])
async def test_what_is_not_a_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(ValueError, match="is not a cursor of this list"):
        await store.exchanges.search(ExchangeFilter(), cursor=cursor)


def test_a_snippet_shows_the_first_word_that_is_there() -> None:
    assert snippet(["nothing", "before THE word after"], "missing the", around=4) == "…ore THE wor…"
    assert snippet(["short"], "short") == "short"
    assert snippet(["a.b"], "a.b") == "a.b"
    assert snippet(["nothing"], "else") == ""
    assert snippet(["x" * MAX_TEXT], "x" * (MAX_TEXT + 5)) == "x" * MAX_TEXT


def indexed(file: object) -> int:
    """How many exchanges the trigram index holds."""
    engine = sa.create_engine(f"sqlite:///{file}", poolclass=sa.NullPool)
    with engine.connect() as connection:
        return int(connection.exec_driver_sql("SELECT count(*) FROM exchanges_search_docsize").scalar_one())
