"""One sampler for everybody who watches: queue, speed and hardware once a second, kept for fifteen minutes.

The event loop takes the samples, since it owns the service; the hardware is read by a thread of its own, so that a
driver that hangs makes readings old and holds nobody up. Knows nothing of pages: watchers are plain callbacks.
"""

import asyncio
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from loguru import logger

from engine import hardware
from engine.backends import KnowsStreams
from engine.hardware import Hardware
from engine.history import History
from engine.job import Outcome
from engine.service import ChatService
from engine.sketch import Sketch
from engine.stalls import StallWatch
from engine.types import Status

EVERY_S = 1.0
LAG_EVERY_S = 0.1
WINDOW_S = 15 * 60


@dataclass(frozen=True, slots=True)
class Sample:
    """How things stood at one moment."""

    at: datetime
    running: int
    waiting: int
    tokens: int  # generated since the start
    tokens_per_s: float  # since the sample before
    refused: Mapping[str, int]  # since the start, by error code
    lag_s: float  # the latest that the event loop came to a call since the sample before
    hardware: Hardware | None  # None until the first reading


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and 95th percentile of a duration, in seconds."""

    median_s: float
    p95_s: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What happened in the last `WINDOW_S` seconds, or since the start where that is shorter."""

    requests: int  # that ended
    tokens_per_s: float  # mean
    ttft: Spread | None  # from asking to the first token, waiting included; None where there was none
    queue: Spread | None  # from asking to running
    ended: Mapping[Status, int]
    refused: Mapping[str, int]  # by error code
    gaps: Spread | None = None  # between two tokens


Watcher = Callable[[Sample], None]


class Monitor:
    def __init__(self, service: ChatService, read: Callable[[], Hardware] = hardware.read) -> None:
        self.service = service
        self.samples: deque[Sample] = deque(maxlen=int(WINDOW_S / EVERY_S) + 1)
        self.history = History()
        self._stalls = StallWatch()
        self._told_s = 0.0  # outcomes up to this moment of the monotonic clock are in the history
        self._read = read
        self._hardware: Hardware | None = None
        self._watchers: set[Watcher] = set()
        self.on_lag: list[
            Callable[[float], None]
        ] = []  # told every LAG_EVERY_S how late the event loop came, in seconds
        self._lag_s = 0.0  # the most since the last sample
        self._sampled_s = 0.0  # when the last sample was taken, time.monotonic()
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = threading.Event()
        self._figures: tuple[Sample, Figures] | None = None
        self.sample()  # so that there is always one

    async def start(self) -> None:
        """Take a sample every second from now on."""
        self._stopping.clear()
        threading.Thread(target=self._read_hardware, name="hardware", daemon=True).start()
        self._tasks = [
            asyncio.create_task(self._keep_sampling(), name="monitor"),
            asyncio.create_task(self._watch_lag(), name="event loop lag"),
        ]

    async def stop(self) -> None:
        """End the sampling; a second call does nothing."""
        self._stopping.set()
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        self._tasks = []

    @property
    def now(self) -> Sample:
        """The newest sample."""
        return self.samples[-1]

    def watch(self, watcher: Watcher) -> Callable[[], None]:
        """Call `watcher` with every new sample, on the event loop; the returned call ends that."""
        self._watchers.add(watcher)
        return lambda: self._watchers.discard(watcher)

    def figures(self) -> Figures:
        """The figures as of the newest sample, computed once for all who ask."""
        if self._figures is None or self._figures[0] is not self.now:
            made = figures(self.samples, self.service.recent, time.monotonic())
            self._figures = self.now, replace(made, gaps=_spread_of(self.history.gaps()))
        return self._figures[1]

    def sample(self, lag_s: float = 0.0) -> None:
        """Take a sample and tell the watchers. What fails in one of them is logged and hurts no other."""
        service, before = self.service, self.samples[-1] if self.samples else None
        running, waiting = service.places.own()
        at = datetime.now(UTC)
        going_on = (job.completion_tokens for job in service.jobs.values() if job.finished_s is None)
        tokens = service.generated_tokens + sum(going_on)
        now_s = time.monotonic()  # the time of day may be set between two samples
        seconds, self._sampled_s = (now_s - self._sampled_s) if before else 0.0, now_s
        sample = Sample(
            at=at,
            running=running,
            waiting=waiting,
            tokens=tokens,
            tokens_per_s=max(0, tokens - before.tokens) / seconds if before and seconds > 0 else 0.0,
            refused=dict(service.refused),
            lag_s=lag_s,
            hardware=self._hardware,
        )
        self.samples.append(sample)
        self.history.take(sample, self._new_outcomes())
        self.service.intake.stall = self._stalls.look(time.monotonic(), sample.running, self._signs_of_life())
        for watcher in tuple(self._watchers):
            try:
                watcher(sample)
            except Exception as error:
                logger.opt(exception=error).error("a watcher of the monitor failed")

    def _new_outcomes(self) -> list[Outcome]:
        """The requests that have ended since the last look."""
        new = []
        for outcome in reversed(self.service.recent):
            if outcome.ended_s <= self._told_s:
                break
            new.append(outcome)
        self._told_s = max((outcome.ended_s for outcome in new), default=self._told_s)
        return new

    def _signs_of_life(self) -> object:
        """Differs from the last look if a token came, a piece of a prompt was read, or somebody began or ended."""
        backend, jobs = self.service.backend, self.service.jobs.values()
        looks = (backend.look(job.id) for job in jobs) if isinstance(backend, KnowsStreams) else ()
        return [
            [(job.id, job.status, job.completion_tokens) for job in jobs],
            [look.read_tokens if look else 0 for look in looks],
        ]

    async def _keep_sampling(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + EVERY_S
        while True:
            await asyncio.sleep(due - loop.time())
            self.sample(lag_s=max(self._lag_s, loop.time() - due))
            self._lag_s = 0.0
            missed = loop.time() >= due + EVERY_S  # after a standstill: go on, and do not catch up
            due = (loop.time() if missed else due) + EVERY_S

    async def _watch_lag(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LAG_EVERY_S
            await asyncio.sleep(LAG_EVERY_S)
            lag_s = max(0.0, loop.time() - due)
            self._lag_s = max(self._lag_s, lag_s)
            for told in self.on_lag:
                told(lag_s)

    def _read_hardware(self) -> None:
        told = False
        while not self._stopping.is_set():
            try:
                self._hardware = self._read()
            except Exception as error:
                self._hardware = None
                if not told:
                    logger.opt(exception=error).error("the hardware cannot be read")
                told = True
            self._stopping.wait(EVERY_S)


def figures(samples: Sequence[Sample], outcomes: Iterable[Outcome], now_s: float) -> Figures:
    """Sum up the outcomes of the last WINDOW_S seconds before `now_s` (time.monotonic()) and the samples given."""
    recent = [outcome for outcome in outcomes if now_s - outcome.ended_s <= WINDOW_S]
    first, last = samples[0], samples[-1]
    seconds = (last.at - first.at).total_seconds()
    return Figures(
        requests=len(recent),
        tokens_per_s=max(0, last.tokens - first.tokens) / seconds if seconds > 0 else 0.0,
        ttft=spread([outcome.ttft_s for outcome in recent if outcome.ttft_s is not None]),
        queue=spread([outcome.queue_s for outcome in recent]),
        ended=Counter(outcome.status for outcome in recent),
        refused=Counter(last.refused) - Counter(first.refused),
    )


def spread(values: Sequence[float]) -> Spread | None:
    """Median and 95th percentile; None of nothing."""
    ordered = sorted(values)
    return Spread(percentile(ordered, 0.5), percentile(ordered, 0.95)) if ordered else None


def _spread_of(sketch: Sketch) -> Spread | None:
    median, p95 = sketch.percentile(0.5), sketch.percentile(0.95)
    return None if median is None or p95 is None else Spread(median, p95)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which this share of the ascending values lies, interpolated (Hyndman and Fan, type 7)."""
    place = (len(ordered) - 1) * share
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))
