"""kill -9 in the middle of writing, again and again on the same file."""

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

from engine.types import Status
from storage import Store
from storage.records import ExchangeFilter

ROOT = Path(__file__).parents[2]
WRITER = Path(__file__).with_name("crashing_writer.py")
WHOLE = "一二三 four five " * 4


def write_until_killed(url: str, lines: int) -> list[list[str]]:
    """Run the writer, kill it after so many lines, and return all that it has said."""
    with subprocess.Popen(
        [sys.executable, str(WRITER), url], cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        said = [writer.stdout.readline() for _ in range(lines)]
        writer.kill()
        said += writer.stdout.readlines()
    return [line.split() for line in said if line.endswith("\n")]


async def test_nothing_acknowledged_is_lost_and_the_rest_is_interrupted(file: Path) -> None:
    finals: set[str] = set()
    partials: dict[str, int] = {}
    for turn in range(5):
        for word, id, *numbers in write_until_killed(f"sqlite:///{file}", random.Random(turn).randint(1, 300)):
            if word == "final":
                finals.add(id)
            else:
                partials[id] = int(numbers[0])
        store = Store(f"sqlite:///{file}")
        store.open()
        rows = (await store.exchanges.search(ExchangeFilter(), limit=100_000)).items
        assert {row.status for row in rows} <= {Status.DONE, Status.INTERRUPTED}
        done = {row.id for row in rows if row.status is Status.DONE}
        assert finals <= done
        for id, length in partials.items():
            exchange = await store.exchanges.get(id)
            assert exchange is not None
            assert WHOLE.startswith(exchange.answer)
            assert len(exchange.answer) >= (len(WHOLE) if id in done else length)
            assert exchange.finished_at is not None
        store.close()
        check_integrity(file)
    assert finals
    assert any(id not in finals for id in partials)


def check_integrity(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        connection.execute("INSERT INTO exchanges_search (exchanges_search) VALUES ('integrity-check')")
        (rows,) = connection.execute("SELECT count(*) FROM exchanges").fetchone()
        assert connection.execute("SELECT count(*) FROM exchanges_search_docsize").fetchone() == (rows,)
    connection.close()
