"""Python looks for old garbage once in a while, among everything seldom, and among what is young as usual."""

import gc
from collections.abc import Iterator

import pytest

from ui import interpreter
from ui.interpreter import NEVER, SeldomAmongEverything


@pytest.fixture
def usual() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    gc.disable()  # the tests say when Python looks; it would look through all of theirs meanwhile
    gc.unfreeze()
    yield before
    gc.set_threshold(*before)
    gc.freeze()
    gc.enable()


def test_after_a_look_among_everything_the_next_one_has_to_wait(usual: tuple[int, int, int]) -> None:
    seldom = SeldomAmongEverything()
    seldom("stop", {"generation": 2})
    assert gc.get_threshold() == (*usual[:2], NEVER)
    seldom("start", {"generation": 1})
    seldom("stop", {"generation": 1})
    assert gc.get_threshold() == (*usual[:2], NEVER)


def test_when_its_time_has_passed_python_decides_again(
    usual: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "OLD_EVERY_S", 0.0)
    seldom = SeldomAmongEverything()
    seldom("stop", {"generation": 2})
    seldom("stop", {"generation": 0})
    assert gc.get_threshold()[2] == NEVER  # the youngest are looked through too often to ask the clock each time
    seldom("stop", {"generation": 1})
    assert gc.get_threshold() == usual


@pytest.mark.parametrize("lull", [False, True])
def test_what_was_looked_through_is_put_aside_until_there_is_much_more_of_it(
    lull: bool, usual: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "OLD_EVERY_S", 0.0)
    monkeypatch.setattr(interpreter, "LULL_S", 0.0 if lull else 1000.0)
    monkeypatch.setattr(interpreter, "MORE", 1.04)  # there is much in the tests' own process
    monkeypatch.setattr(interpreter, "MORE_IN_A_LULL", 1.01)
    seldom = SeldomAmongEverything()
    seldom("stop", {"generation": 2})
    aside = gc.get_freeze_count()
    assert aside > 0
    seldom("stop", {"generation": 1})
    assert gc.get_freeze_count() == aside
    kept: list[list[object]] = [[] for _ in range(aside // 40)]
    seldom("stop", {"generation": 2})
    assert gc.get_freeze_count() >= aside + len(kept)
    seldom("stop", {"generation": 1})
    assert (gc.get_freeze_count() == 0) == lull  # the next look is among everything
    kept += [[] for _ in range(aside // 20)]
    seldom("stop", {"generation": 2})
    seldom("stop", {"generation": 1})
    assert (gc.get_freeze_count() == 0) != lull  # a look among everything was the last one, where there was a lull
    assert gc.get_threshold() == usual
