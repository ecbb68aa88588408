"""The monitor over a fed service: samples, watchers, and the figures of the last fifteen minutes."""

import asyncio
import threading
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from engine import hardware, monitor
from engine.errors import QueueFull
from engine.hardware import Hardware
from engine.job import Outcome
from engine.monitor import WINDOW_S, Monitor, Sample, Spread, figures, percentile, spread
from engine.types import Status
from tests.engine.kit import UnrulyBackend, assert_empty, ended, parts, question, running, service_on, until


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "EVERY_S", 0.001)


async def next_sample(watched: Monitor) -> Sample:
    came: asyncio.Future[Sample] = asyncio.get_running_loop().create_future()

    def take(sample: Sample) -> None:
        if not came.done():
            came.set_result(sample)

    end = watched.watch(take)
    try:
        return await came
    finally:
        end()


async def test_a_sample_says_who_runs_who_waits_and_what_was_refused() -> None:
    backend = UnrulyBackend()
    service = await service_on(backend, max_concurrent_requests=1, max_waiting_requests=1, drain_s=0)
    watched = Monitor(service, read=hardware.read)
    assert (watched.now.running, watched.now.waiting, watched.now.tokens, watched.now.tokens_per_s) == (0, 0, 0, 0)
    backend.hold()
    job = await service.submit(question())
    waiting = await service.submit(question())
    with pytest.raises(QueueFull):
        await service.submit(question())
    await until(job, running)
    watched.sample()
    assert (watched.now.running, watched.now.waiting, watched.now.refused) == (1, 1, {"queue_full": 1})
    backend.go()
    await ended(job)
    await ended(waiting)
    watched.sample()
    assert (watched.now.running, watched.now.waiting) == (0, 0)
    assert watched.now.tokens == 2 * len(["You", " said:", " hello"])
    seconds = (watched.samples[2].at - watched.samples[1].at).total_seconds()
    assert watched.now.tokens_per_s == pytest.approx(watched.now.tokens / seconds, rel=0.5)  # another clock


async def test_tokens_of_running_answers_count_while_they_come() -> None:
    backend = UnrulyBackend()
    service = await service_on(backend, drain_s=0)
    watched = Monitor(service, read=hardware.read)
    job = await service.submit(question("long"))
    await until(job, lambda update: update.seq >= 5)
    backend.hold()
    watched.sample()
    assert watched.now.tokens == job.completion_tokens >= 5
    service.stop_job(job)
    await ended(job)
    watched.sample()
    assert watched.now.tokens == job.completion_tokens
    await service.stop()
    assert_empty(service)


async def test_tokens_count_once_while_the_final_row_is_being_written() -> None:
    backend = UnrulyBackend()
    service = await service_on(backend, drain_s=0)
    watched = Monitor(service, read=hardware.read)
    job = await service.submit(question("long"))
    await until(job, lambda update: update.seq >= 5)
    _, recorder = parts(service)
    recorder.silent = True
    service.stop_job(job)
    await asyncio.wait([task for task in asyncio.all_tasks() if task.get_name() == f"job {job.id}"])
    await asyncio.sleep(0)  # what follows its end comes with the loop's next turn
    watched.sample()
    assert not job.status.final
    assert watched.now.tokens == job.completion_tokens
    for written in recorder.unwritten:
        written.set_result(None)
    await ended(job)


@pytest.mark.usefixtures("quick")
async def test_it_samples_by_itself_and_reads_the_hardware_off_the_loop() -> None:
    threads: list[threading.Thread] = []

    def read() -> Hardware:
        threads.append(threading.current_thread())
        return hardware.read()

    watched = Monitor(await service_on(), read)
    await watched.start()
    first = await next_sample(watched)
    while (sample := await next_sample(watched)).hardware is None:
        pass
    assert sample.at > first.at
    assert sample.lag_s >= 0
    await watched.stop()
    await watched.stop()
    assert threading.main_thread() not in threads
    threads[0].join()


@pytest.mark.usefixtures("quick")
async def test_a_driver_that_hangs_holds_nobody_up() -> None:
    hung, released = threading.Event(), threading.Event()

    def read() -> Hardware:
        hung.set()
        assert released.wait(60)
        return hardware.read()

    watched = Monitor(await service_on(), read)
    await watched.start()
    assert await asyncio.to_thread(hung.wait, 60)
    for _ in range(3):
        assert (await next_sample(watched)).hardware is None
    await watched.stop()
    released.set()


@pytest.mark.usefixtures("quick")
async def test_hardware_that_cannot_be_read_is_read_again_later() -> None:
    attempts: Iterator[int] = iter(range(1000))

    def read() -> Hardware:
        if next(attempts) < 3:
            raise OSError("the driver is being replaced")
        return hardware.read()

    watched = Monitor(await service_on(), read)
    await watched.start()
    while (await next_sample(watched)).hardware is None:
        pass
    await watched.stop()


async def test_one_watcher_that_fails_hurts_no_other() -> None:
    watched = Monitor(await service_on(), read=hardware.read)
    seen: list[Sample] = []

    def broken(sample: Sample) -> None:
        raise RuntimeError("this page is gone")

    watched.watch(broken)
    end = watched.watch(seen.append)
    watched.sample()
    assert seen == [watched.now]
    end()
    end()
    watched.sample()
    assert len(seen) == 1


async def test_samples_are_kept_for_fifteen_minutes() -> None:
    watched = Monitor(await service_on(), read=hardware.read)
    for _ in range(int(WINDOW_S) + 50):
        watched.sample()
    assert len(watched.samples) == WINDOW_S + 1


async def test_figures_are_made_once_for_everybody() -> None:
    watched = Monitor(await service_on(), read=hardware.read)
    assert watched.figures() is watched.figures()
    before = watched.figures()
    watched.sample()
    assert watched.figures() is not before


def outcome(ended_s: float, status: Status = Status.DONE, queue_s: float = 0, ttft_s: float | None = None) -> Outcome:
    return Outcome(ended_s, status, queue_s=queue_s, ttft_s=ttft_s, total_s=1, completion_tokens=10)


def sample(seconds: float, tokens: int = 0, **refused: int) -> Sample:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    return Sample(at, 0, 0, tokens, 0, refused, 0, None)


def test_figures_sum_up_the_window_alone() -> None:
    outcomes = [
        outcome(99, Status.FAILED, queue_s=500),  # just too old
        outcome(100, queue_s=1, ttft_s=2),
        outcome(500, queue_s=2, ttft_s=4),
        outcome(900, queue_s=3, ttft_s=6),
        outcome(950, Status.CANCELLED, queue_s=4),  # never came to a token
    ]
    samples = [sample(0, tokens=50, queue_full=2), sample(10, tokens=150, queue_full=5, user_limit=1)]
    found = figures(samples, outcomes, now_s=100 + WINDOW_S)
    assert found.requests == 4
    assert found.ended == {Status.DONE: 3, Status.CANCELLED: 1}
    assert found.refused == {"queue_full": 3, "user_limit": 1}
    assert found.tokens_per_s == 10
    assert found.ttft is not None
    assert (found.ttft.median_s, found.ttft.p95_s) == pytest.approx((4, 5.8))
    assert found.queue is not None
    assert (found.queue.median_s, found.queue.p95_s) == pytest.approx((2.5, 3.85))


def test_figures_of_nothing_are_no_figures() -> None:
    found = figures([sample(0)], deque(), now_s=0)
    assert (found.requests, found.tokens_per_s, found.ttft, found.queue) == (0, 0, None, None)
    assert not found.ended
    assert not found.refused


@pytest.mark.parametrize(
    ("values", "share", "value"),
    [([7.0], 0.95, 7), ([1.0, 3.0], 0.5, 2), ([1.0, 2.0, 3.0], 0.5, 2), ([0.0, 10.0], 0.95, 9.5)],
)
def test_percentiles_are_interpolated(values: list[float], share: float, value: float) -> None:
    assert percentile(values, share) == pytest.approx(value)


def test_a_spread_needs_no_order() -> None:
    assert spread([3, 1, 2]) == spread([1, 2, 3]) == Spread(2, 2.9)
    assert spread([]) is None
