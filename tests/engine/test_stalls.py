"""The watch for stalls, with a clock of its own."""

from collections.abc import Iterable

import pytest

from engine.monitor import Monitor
from engine.stalls import StallWatch
from tests.engine.kit import UnrulyBackend, ended, question, running, service_on, until


def looks(watch: StallWatch, seconds: Iterable[float], running: int, signs: object) -> list[str]:
    return [watch.look(second, running, signs) for second in seconds]


def test_work_that_does_not_move_for_twenty_seconds_is_a_stall() -> None:
    watch = StallWatch()
    assert not any(looks(watch, range(20), 2, "same"))
    stall = watch.look(20, 2, "same")
    assert stall == "Requests run, and nothing has come from the engine for more than 20 s."
    assert watch.look(39, 2, "same") == stall
    assert watch.look(40, 2, "same") == stall.replace("20", "40")


@pytest.mark.parametrize("alive", ["a token", "a piece of a prompt"])
def test_any_sign_of_life_ends_it(alive: str) -> None:
    watch = StallWatch()
    assert looks(watch, range(26), 1, "still")[-1]
    assert not watch.look(26, 1, alive)
    assert not watch.look(45, 1, alive)
    assert watch.look(46, 1, alive)


def test_a_long_prompt_that_is_being_read_is_no_stall() -> None:
    watch = StallWatch()
    assert not any(watch.look(second, 1, read) for second, read in zip(range(0, 600, 15), range(40), strict=True))


def test_an_idle_server_is_no_stall() -> None:
    watch = StallWatch()
    assert not any(looks(watch, range(100), 0, "same"))
    assert not any(looks(watch, range(100, 119), 1, "same"))


async def test_the_monitor_tells_the_service() -> None:
    backend = UnrulyBackend()
    service = await service_on(backend, drain_s=0)
    backend.hold()
    job = await service.submit(question())
    await until(job, running)
    monitor = Monitor(service)
    monitor._stalls = StallWatch(after_s=1e-9)
    monitor.sample()
    monitor.sample()
    assert service.state()[0] == "stalled"
    backend.go()
    await ended(job)
    monitor.sample()
    assert service.state() == ("ready", "")
