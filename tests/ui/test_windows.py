"""A clock that is set by an hour or by years changes nothing for those who call, sign in, or are in the log."""

import time

import pytest
from limits import parse
from limits.strategies import MovingWindowRateLimiter

from engine.monitor import Monitor
from tests.engine.kit import service_on
from ui.bus import Bus
from ui.retention import SteadyDays
from ui.tries import TooManyTries, Tries
from ui.windows import SWEEP_AT, SteadyStorage

HOUR_S = 3600.0


class Clocks:
    """The time of day and the monotonic clock, both set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.day_s, self.steady_s = 1_800_000_000.0, 1000.0
        monkeypatch.setattr(time, "time", lambda: self.day_s)
        monkeypatch.setattr(time, "monotonic", lambda: self.steady_s)

    def run(self, seconds: float) -> None:
        self.day_s += seconds
        self.steady_s += seconds


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


def test_a_window_moves_with_the_steady_clock(clocks: Clocks) -> None:
    limiter, twice = MovingWindowRateLimiter(SteadyStorage()), parse("2/minute")
    assert [limiter.hit(twice, "ada") for _ in range(3)] == [True, True, False]
    assert limiter.get_window_stats(twice, "ada").reset_time == clocks.steady_s + 60
    clocks.run(59)
    assert not limiter.test(twice, "ada")
    clocks.run(2)
    assert limiter.hit(twice, "ada")
    limiter.clear(twice, "ada")
    assert limiter.get_window_stats(twice, "ada").remaining == 2


@pytest.mark.parametrize("set_by_s", [-HOUR_S, HOUR_S])
def test_wrong_passwords_count_for_their_minute_whatever_the_clock_is_set_to(clocks: Clocks, set_by_s: float) -> None:
    tries = Tries(Bus())
    for _ in range(5):
        tries.begin("ada", "10.0.0.1")
    clocks.day_s += set_by_s
    with pytest.raises(TooManyTries):
        tries.begin("ada", "10.0.0.1")
    clocks.run(61)
    tries.begin("ada", "10.0.0.1")


def test_callers_that_are_long_gone_take_no_memory(clocks: Clocks) -> None:
    storage, once = SteadyStorage(), parse("1/minute")
    limiter = MovingWindowRateLimiter(storage)
    for number in range(SWEEP_AT):
        limiter.hit(once, str(number))
    clocks.run(61)
    limiter.hit(once, "ada")
    assert len(storage._calls) == 1


def test_what_is_old_is_not_told_by_a_clock_that_was_just_set(clocks: Clocks) -> None:
    days = SteadyDays()
    clocks.run(24 * HOUR_S)
    clocks.day_s += 60  # a correction
    assert days.steady()
    clocks.day_s += 10 * 365 * 24 * HOUR_S
    clocks.run(HOUR_S)
    assert not days.steady()
    clocks.run(HOUR_S)
    assert days.steady()


async def test_the_speed_is_right_although_the_clock_is_set(clocks: Clocks) -> None:
    service = await service_on()
    monitor = Monitor(service)
    service.generated_tokens = 50
    clocks.run(10)
    clocks.day_s -= HOUR_S
    monitor.sample()
    assert monitor.now.tokens_per_s == 5
    await service.stop()
