"""What a soak looks for, on logs that are at fault: an assertion that cannot fail would show nothing."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench.crowd import Soak
from bench.soak import check_log
from engine.types import new_id

MINE, THEIRS = (f"nonce{new_id()}" for _ in range(2))
Row = tuple[str, str, str]


def said(word: str) -> Row:
    return f"soak\n{word}", f"You said: soak\n{word}", "done"


def log(folder: Path, *rows: Row) -> Path:
    with closing(sqlite3.connect(folder / "qdesk.db")) as database, database:
        database.execute("create table exchanges (prompt text, answer text, status text)")
        database.executemany("insert into exchanges values (?, ?, ?)", rows)
    return folder


def test_a_log_without_a_fault_is_counted(tmp_path: Path) -> None:
    stopped = (f"soak\n{THEIRS}", "You said:", "stopped")
    assert check_log(log(tmp_path, said(MINE), stopped), {MINE, THEIRS}) == "done 1, stopped 1"


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([said(MINE)], "1 questions that were taken are not in the log"),
        ([said(MINE), said(THEIRS), said(THEIRS)], "a question is in the log twice"),
        ([said(MINE), (said(THEIRS)[0], said(MINE)[1], "stopped")], "another's answer below"),
        ([said(MINE), (said(THEIRS)[0], "You said: soak", "done")], "You said: soak"),
        ([said(MINE), (said(THEIRS)[0], "", "running")], "left unfinished"),
    ],
)
def test_each_fault_is_found(tmp_path: Path, rows: list[Row], fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        check_log(log(tmp_path, *rows), {MINE, THEIRS})


def test_whoever_sees_the_words_of_others_is_told() -> None:
    soak = Soak(until_s=0.0, dice=random.Random(7))
    soak.check(f"You said: {MINE}", {MINE})
    assert soak.faults == []
    soak.check(f"You said: {MINE} {THEIRS}", {MINE})
    assert soak.faults
