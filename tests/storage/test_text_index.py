"""Finding text on PostgreSQL: by its trigram index where there is one, and without where there may be none."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
import sqlalchemy as sa
from loguru import logger

from engine.types import ExchangeFilter, Status
from storage import Store, text_index
from tests import postgresql
from tests.storage.making import NOON, an_exchange, fill

pytestmark = pytest.mark.skipif(not postgresql.there_is_one(), reason=postgresql.MISSING)

ROWS = 2000
FILLER = "lorem ipsum 今日会议纪要 dolor sit amet 请各部门按时提交材料 " * 8
NEEDLES = {7: "天气预报 needle", 1007: "昨天的天气 Needle"}


@pytest.fixture(scope="module")
def url() -> str:
    """A log in which little is found, and its planner knows that."""
    url = postgresql.migrated()
    texts = (f"{NEEDLES.get(number, '')} question {number} {FILLER}" for number in range(ROWS))
    rows = [an_exchange(text, FILLER, queued_at=NOON + timedelta(minutes=at)) for at, text in enumerate(texts)]
    fill(url, rows)
    with by_itself(url) as connection:
        connection.exec_driver_sql("VACUUM ANALYZE exchanges")
    return url


@contextmanager
def by_itself(url: str) -> Iterator[sa.Connection]:
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        yield connection


@contextmanager
def plans() -> Iterator[list[str]]:
    """How the lists are found that are asked for in the block, as the planner says."""
    found: list[str] = []

    def explain(connection: sa.Connection, cursor: object, statement: str, values: object, *_: object) -> None:
        if "ILIKE" in statement:
            raw = connection.connection.driver_connection
            assert raw is not None
            rows = raw.execute(f"EXPLAIN {statement}", values).fetchall()
            found.append("\n".join(row[0] for row in rows))

    sa.event.listen(sa.Engine, "before_cursor_execute", explain)
    try:
        yield found
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", explain)


async def search(store: Store, **asked: object) -> list[int]:
    """The numbers in the questions that are found, newest first."""
    page = await store.exchanges.search(ExchangeFilter(**asked), limit=50)  # type: ignore[arg-type]  # by name
    return [int(row.prompt.split(" question ")[1].split()[0]) for row in page.items]


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ({"text": "天气预报"}, [7]),
        ({"text": "的天气"}, [1007]),
        ({"text": "needle"}, [1007, 7]),
        ({"text": "天气 needle"}, [1007, 7]),
        ({"text": "needle", "status": Status.DONE, "until": NOON + timedelta(minutes=500)}, [7]),
        ({"text": "question 1234"}, [1234]),
        ({"text": "100% needle"}, []),
    ],
)
async def test_words_of_three_characters_and_more_are_found_by_the_index(
    url: str, asked: dict[str, object], numbers: list[int]
) -> None:
    store = Store(url)
    store.open(beside=True)
    with plans() as found:
        assert await search(store, **asked) == numbers
    assert [f"on {text_index.NAME}" in plan for plan in found] == [True], found
    store.close()


async def test_a_word_that_nearly_all_have_is_found_by_walking_back_in_time(url: str) -> None:
    """Gathering all of them by the index, to show the newest, would take as long as the log is."""
    store = Store(url)
    store.open(beside=True)
    with plans() as found:
        assert await search(store, text="question") == list(range(ROWS - 1, ROWS - 51, -1))
    assert "Backward using ix_exchanges_log" in found[0]
    assert text_index.NAME not in found[0]
    store.close()


async def test_two_characters_are_found_row_by_row_and_so_is_what_still_runs(url: str) -> None:
    store = Store(url)
    store.open(beside=True)
    with plans() as found:
        assert await search(store, text="天气") == [1007, 7]
    assert text_index.NAME not in found[0]
    later = NOON + timedelta(days=30)
    await store.exchanges.record(
        an_exchange("needle question 5000 ", "正在写天气预报", status=Status.RUNNING, queued_at=later)
    )
    assert await search(store, text="needle") == [5000, 1007, 7]
    assert await search(store, text="写天气预") == [5000]
    with by_itself(url) as connection:
        connection.exec_driver_sql("DELETE FROM exchanges WHERE status = 'running'")
    store.close()


async def test_without_the_right_to_make_it_the_same_is_found_and_a_sentence_says_so() -> None:
    owners = postgresql.new_database()
    with by_itself(owners) as connection:
        connection.exec_driver_sql("CREATE ROLE clerk LOGIN")
        connection.exec_driver_sql("GRANT CREATE ON SCHEMA public TO clerk")
    clerks = sa.make_url(owners).set(username="clerk").render_as_string(hide_password=False)
    said: list[str] = []
    sink = logger.add(said.append, format="{message}", level="WARNING")

    store = Store(clerks)
    store.open()
    assert "permission denied to create extension" in said[0]
    assert "Let whoever owns the database run CREATE EXTENSION pg_trgm in it" in said[0]
    await store.exchanges.record(an_exchange("天气预报 question 1 "))
    assert await search(store, text="气预报") == [1]
    store.close()

    with by_itself(owners) as connection:
        connection.exec_driver_sql("CREATE EXTENSION pg_trgm")
    store = Store(clerks)
    store.open()
    assert len(said) == 1
    assert await search(store, text="气预报") == [1]
    store.close()
    with by_itself(owners) as connection:
        assert text_index.is_there(connection)
    logger.remove(sink)


def test_an_index_over_rows_is_announced_and_what_keeps_it_from_being_made_is_named() -> None:
    url = postgresql.migrated()
    fill(url, [an_exchange("天气预报"), an_exchange("a needle")])
    said: list[str] = []
    sink = logger.add(said.append, format="{message}", level="INFO")
    with by_itself(url) as connection:
        connection.exec_driver_sql("DROP EXTENSION pg_trgm CASCADE")
        connection.exec_driver_sql("CREATE SCHEMA aside")
        connection.exec_driver_sql("CREATE EXTENSION pg_trgm SCHEMA aside")  # where it is there and not found
        Store(url).migrate()
        announced, refused = said
        assert "over 2 exchanges" in announced
        assert 'operator class "gin_trgm_ops" does not exist' in refused
        assert "The next start tries again" in refused
        assert "CREATE EXTENSION" not in refused
        assert not text_index.is_there(connection)

        connection.exec_driver_sql("ALTER EXTENSION pg_trgm SET SCHEMA public")
        Store(url).migrate()
        assert said[2:] == [announced]
        assert text_index.is_there(connection)
        Store(url).migrate()
        assert len(said) == 3
    logger.remove(sink)


def test_a_database_that_knows_no_chinese_letters_is_told_of() -> None:
    with by_itself(postgresql.new_database()) as connection:
        connection.exec_driver_sql("CREATE DATABASE plain_c TEMPLATE template0 LOCALE 'C'")
        url = connection.engine.url.set(database="plain_c").render_as_string(hide_password=False)
    said: list[str] = []
    sink = logger.add(said.append, format="{message}", level="WARNING")
    Store(url).migrate()
    logger.remove(sink)
    assert "its LC_CTYPE is C" in said[0]
