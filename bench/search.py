"""How long the review inbox waits for its lists, on a log of any length.

    python -m bench.search --rows 100000
    python -m bench.search --rows 1000000 --folder /some/folder        # made once, then kept

Makes a database of deterministic exchanges over a year, English and Chinese, rated and labelled, unless the folder
holds it already (an older one is brought to the newest schema, in place). Asks what reviewers ask, each question
several times, and writes a table of seconds to bench/results. Times are of the whole way through the store: thread,
query, rows, snippets; at the end also of all that the page waits for.
"""

import argparse
import asyncio
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.report import save
from engine.types import Exchange, ExchangeFilter, Message, Sampling, Status
from storage import Store
from storage.records import ExchangeRow
from storage.rows import to_values

START, YEAR = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=365)
NOW = START + YEAR
BATCH, PEOPLE = 5000, 50
FTS5_COLLECTS_IN = 1 << 20  # bytes, unless it is told otherwise
RARE_ENGLISH, RARE_HAN = "zyxomatic", "鲲鹏"  # in one exchange of ten thousand
SHARED = (  # statuses with their weights
    {Status.DONE: 930, Status.STOPPED: 30, Status.FAILED: 15, Status.TIMED_OUT: 5, Status.CANCELLED: 20}
)

_ENGLISH = (
    "the a of to and in is for that this with report budget invoice server network meeting project customer contract "
    "travel holiday summary translate letter email table formula python function database query index error why how "
    "please write explain compare list steps short long polite formal draft answer question policy security password "
    "printer office training schedule risk quality supplier price order delivery warehouse machine sensor data"
)
_HAN = (
    "我们 公司 报销 流程 请问 怎么 如何 会议 纪要 项目 客户 合同 发票 预算 服务器 网络 数据库 查询 索引 错误 原因 "
    "说明 翻译 邮件 总结 表格 公式 函数 安全 密码 打印机 办公室 培训 计划 风险 质量 供应商 价格 订单 交货 仓库 机器 "
    "传感器 数据 天气 今天 明天 上海 北京 出差 机票 酒店 申请 审批 部门 经理 员工 工资 假期 加班 考勤 系统 升级 更新 "
    "的 了 是 在 和"
)
ENGLISH, HAN = _ENGLISH.split(), _HAN.split()


@dataclass(frozen=True, slots=True)
class Figure:
    question: str
    rows: int  # in the answer
    median_s: float
    slowest_s: float
    processor_s: float  # of this process, median: what others do on the machine is not in it


def exchange(number: int, of: int, people: list[str]) -> Exchange:
    """The exchange of this number: always the same."""
    draw = random.Random(number)
    prompt, answer = _texts(draw)
    queued = START + YEAR * (number / of)
    waited = timedelta(seconds=draw.choice((0.01, 0.01, 0.3, 2, 12 if draw.random() < 0.05 else 1)))
    status = draw.choices(list(SHARED), list(SHARED.values()))[0]
    return Exchange(
        id=f"{draw.getrandbits(128):032x}",
        person=draw.choice(people),
        source="api" if draw.random() < 0.1 else "page",
        conversation_id=None,
        parent_id=None,
        messages=(Message("system", "Be brief."), Message("user", prompt)),
        answer=answer,
        status=status,
        finish_reason="stop" if status is Status.DONE else None,
        error=None,
        model="Qwen2-7B-Instruct",
        quantization="nf4",
        sampling=Sampling(seed=7),
        prompt_tokens=len(prompt) // 2,
        cached_tokens=0,
        completion_tokens=len(answer) // 2,
        queue_depth=1,
        queued_at=queued,
        started_at=queued + waited,
        first_token_at=queued + waited + timedelta(seconds=0.2),
        finished_at=queued + waited + timedelta(seconds=5),
    )


def _texts(draw: random.Random) -> tuple[str, str]:
    """A prompt and an answer in one language, with names and numbers, so that there are as many terms as in life."""
    list_, between, rare = (HAN, "", RARE_HAN) if draw.random() < 0.5 else (ENGLISH, " ", f" {RARE_ENGLISH}")
    prompt, answer = (between.join(draw.choices(list_, k=draw.randint(*span))) for span in ((4, 30), (20, 160)))
    name = "".join(chr(draw.randrange(0x4E00, 0x9FA5)) for _ in range(2))
    return f"{prompt} {draw.randrange(10**6)} {name}{rare if draw.random() < 1e-4 else ''}", answer


def make(path: Path, rows: int) -> None:
    """Fill the database past the store: rows in their order, and the search index when all are there."""
    store = Store(f"sqlite:///{path}")
    store.open()
    people = asyncio.run(_people(store))
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous=OFF")
        triggers = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            database.execute(f"DROP TRIGGER {name}")
        _insert(database, (to_values(exchange(number, rows, people)) for number in range(rows)))
        _collect_in(database, 1 << 28)
        database.execute(
            "INSERT INTO exchanges_search (rowid, prompt, answer) "
            "SELECT number, prompt || char(10, 10), answer || char(10, 10) FROM exchanges ORDER BY number"
        )
        _collect_in(database, FTS5_COLLECTS_IN)
        for _, sql in triggers:
            database.execute(sql)


def _collect_in(database: sqlite3.Connection, memory: int) -> None:
    """How many bytes of terms the index collects before it writes them as a piece of its own, to be merged later."""
    database.execute("INSERT INTO exchanges_search (exchanges_search, rank) VALUES ('hashsize', ?)", (memory,))


REVIEWED = (  # what people and reviewers made of the exchanges: of 5 % a rating, of 2 % a label, of few another
    "INSERT INTO feedback (exchange_id, user_id, rating, reason, comment, at) "
    "SELECT id, person, CASE WHEN number % 40 = 0 THEN 1 ELSE -1 END, '', '', queued_at FROM exchanges "
    "WHERE number % 20 = 0",
    "INSERT INTO labels (exchange_id, label, by, at) SELECT id, 'tone', :by, queued_at FROM exchanges "
    "WHERE number % 50 = 0",
    "INSERT INTO labels (exchange_id, label, by, at) SELECT id, 'rare', :by, queued_at FROM exchanges "
    "WHERE number % 20000 = 0",
    "INSERT INTO reviews (exchange_id, correction, assignee) SELECT id, '', :by FROM exchanges WHERE number % 100 = 0",
)


def review(path: Path) -> None:
    """Rate, label and assign some of the exchanges, unless that is done."""
    with closing(sqlite3.connect(path)) as database, database:
        if not database.execute("SELECT 1 FROM labels LIMIT 1").fetchone():
            (by,) = database.execute("SELECT id FROM users WHERE name = 'person 7'").fetchone()
            for change in REVIEWED:
                database.execute(change, {"by": by})


async def _people(store: Store) -> list[str]:
    made = [await store.users.create(f"person {number}", "no password", "staff") for number in range(PEOPLE)]
    return [user.id for user in made if user]


def _insert(database: sqlite3.Connection, values: Iterator[dict[str, Any]]) -> None:
    batch: list[dict[str, Any]] = []
    for one in values:
        batch.append({name: _plain(value) for name, value in one.items()})
        if len(batch) == BATCH:
            _write(database, batch)
            batch = []
    _write(database, batch)


def _write(database: sqlite3.Connection, batch: list[dict[str, Any]]) -> None:
    if batch:
        columns, places = ", ".join(batch[0]), ", ".join(f":{name}" for name in batch[0])
        database.execute("BEGIN")
        database.executemany(f"INSERT INTO exchanges ({columns}) VALUES ({places})", batch)
        database.execute("COMMIT")


def _plain(value: Any) -> Any:
    """Times as the store writes them."""
    return f"{value:%Y-%m-%d %H:%M:%S.%f}" if isinstance(value, datetime) else value


async def ask(store: Store, times: int) -> list[Figure]:
    person, reviewer = (await store.users.list())[7].id, await store.users.by_name("person 7")
    month, day = NOW - timedelta(days=30), NOW - timedelta(days=1)
    filters = {
        "all": ExchangeFilter(),
        "one person": ExchangeFilter(person=person),
        "failed": ExchangeFilter(status=Status.FAILED),
        "failed or cut off": ExchangeFilter(cut_off=True),
        "long waits": ExchangeFilter(long_wait=True),
        "thumbs-down": ExchangeFilter(rating=-1),
        "thumbs-down, one person, 30 days": ExchangeFilter(rating=-1, person=person, since=month),
        "a label": ExchangeFilter(label="tone"),
        "a rare label": ExchangeFilter(label="rare"),
        "mine": ExchangeFilter(assignee=reviewer.id if reviewer else None),
        "unreviewed": ExchangeFilter(reviewed=False),
        "another model (none)": ExchangeFilter(model="none"),
        "a common word": ExchangeFilter(text="server"),
        "a rare word": ExchangeFilter(text=RARE_ENGLISH),
        "a word that is nowhere": ExchangeFilter(text="qqqqqq"),
        "two common words": ExchangeFilter(text="server warehouse"),
        "a common word, one person, a day": ExchangeFilter(text="server", person=person, since=day),
        "a common word, before the year": ExchangeFilter(text="server", until=START + timedelta(days=1)),
        "a common word, failed": ExchangeFilter(text="server", status=Status.FAILED),
        "a common word, another model (none)": ExchangeFilter(text="server", model="none"),
        "a common word, another source (none)": ExchangeFilter(text="server", source="import"),
        "a common word, one person, another model (none)": ExchangeFilter(text="server", person=person, model="none"),
        "a common word, failed or cut off": ExchangeFilter(text="server", cut_off=True),
        "a common word, thumbs-down": ExchangeFilter(text="server", rating=-1),
        "a common word, a label": ExchangeFilter(text="server", label="tone"),
        "a common word, a rare label": ExchangeFilter(text="server", label="rare"),
        "a common word, seven filters": ExchangeFilter(
            text="server", person=person, since=month, status=Status.DONE, source="page", rating=-1, label="tone"
        ),
        "three Han": ExchangeFilter(text="数据库"),
        "two Han, common, 30 days": ExchangeFilter(text="报销", since=month),
        "two Han, rare, 30 days": ExchangeFilter(text=RARE_HAN, since=month),
        "two Han, nowhere, 30 days": ExchangeFilter(text="饕餮", since=month),
        "two Han, rare, ever": ExchangeFilter(text=RARE_HAN),
        "two Han twice, 30 days": ExchangeFilter(text="报销 鲲鹏", since=month),
        "one Han, 30 days": ExchangeFilter(text="报", since=month),
        "two Han, failed, 30 days": ExchangeFilter(text="报销", status=Status.FAILED, since=month),
        "two Han, thumbs-down, 30 days": ExchangeFilter(text="报销", rating=-1, since=month),
        "two Han, a label, 30 days": ExchangeFilter(text="报销", label="tone", since=month),
    }
    figures = [await _timed(name, lambda f=f: store.exchanges.search(f), times) for name, f in filters.items()]  # type: ignore[misc]  # f is the filter of its turn
    newest = (await store.exchanges.search(ExchangeFilter(), limit=1)).items[0].id
    return [
        *figures,
        await _timed("others like this", lambda: store.exchanges.like(newest), times),
        await _timed("the page opens", lambda: _page(store), times),
        await _timed("the page's answer: all", lambda: _answer(store, ExchangeFilter()), times),
        await _timed("the page's answer: a common word", lambda: _answer(store, ExchangeFilter(text="server")), times),
    ]


async def _page(store: Store) -> list[str]:
    """What ui/pages/review/page.py asks for before there is anything to see."""
    people, models = await store.users.list(), await store.exchanges.models()
    return [*(user.name for user in people), *models, *await store.reviews.labels()]


async def _answer(store: Store, filter: ExchangeFilter) -> list[ExchangeRow]:
    """All that a list of the page's takes: it is written down who asked, counted who has how much to do, and marked."""
    await store.audit.add("person 7", "review.search", "", "bench")
    await store.reviews.counts()
    page = await store.exchanges.search(filter)
    await store.reviews.marks(row.id for row in page.items)
    return page.items


async def _timed(question: str, ask: Callable[[], Awaitable[Any]], times: int) -> Figure:
    took, worked, found = [], [], 0
    for _ in range(times):
        begun, working = time.perf_counter(), time.process_time()
        answer = await ask()
        took.append(time.perf_counter() - begun)
        worked.append(time.process_time() - working)
        found = len(getattr(answer, "items", answer))
    return Figure(question, found, statistics.median(took), max(took), statistics.median(worked))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="where the database is, or shall be; else it is made and removed")
    parser.add_argument("--times", type=int, default=5)
    given, began = parser.parse_args(), datetime.now(UTC)
    with tempfile.TemporaryDirectory() as temporary:
        path = (given.folder or Path(temporary)) / f"search-{given.rows}.db"
        if not path.exists():
            begun = time.perf_counter()
            make(path, given.rows)
            print(f"made {given.rows} rows in {time.perf_counter() - begun:.0f} s, {path.stat().st_size / 1e6:.0f} MB")
        store = Store(f"sqlite:///{path}")
        store.migrate()
        review(path)
        store.open()
        figures = asyncio.run(ask(store, given.times))
        store.close()
    lines = [
        f"| {one.question} | {one.rows} | {one.median_s:.3f} | {one.slowest_s:.3f} | {one.processor_s:.3f} |"
        for one in figures
    ]
    table = "\n".join(["| question | rows | median s | slowest s | processor s |", "|---|---|---|---|---|", *lines])
    save(began, table, {"rows": given.rows, "figures": [asdict(one) for one in figures]})


if __name__ == "__main__":
    main()
