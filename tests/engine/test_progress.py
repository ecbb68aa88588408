"""What the console shows while something long goes on."""

import io

from engine.progress import console
from engine.types import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_one_line_for_each_stage() -> None:
    terminal = Terminal()
    show = console(stream=terminal)
    for done in (0, 50_000_000, 100_000_000, 100_000_000):
        show(Progress("downloading", done, 100_000_000, "bytes"))
    show(Progress("quantising", 1, 2))
    show(Progress("quantising", 2, 2))
    assert terminal.getvalue().count("\n") == 2
    downloading, quantising = terminal.getvalue().strip().split("\n")
    assert downloading.rpartition("\r\x1b[K")[2].startswith(
        "downloading [##############################] 100%  100 of 100 MB, "
    )
    assert quantising.endswith("quantising [##############################] 100%")


def test_a_stage_without_a_known_end_is_named() -> None:
    terminal = Terminal()
    console(stream=terminal)(Progress("waiting"))
    assert terminal.getvalue() == "\r\x1b[Kwaiting ..."


def test_a_log_gets_a_line_each_tenth(logged: list[str]) -> None:
    show = console(stream=io.StringIO())
    for done in range(101):
        show(Progress("downloading", done * 1000, 100_000, "bytes"))
    assert logged == [f"downloading: {percent} %" for percent in range(0, 101, 10)]


def test_whoever_else_wants_to_know_is_told() -> None:
    told: list[Progress] = []
    console(told.append, io.StringIO())(Progress("loading", 1, 3))
    assert told == [Progress("loading", 1, 3)]
