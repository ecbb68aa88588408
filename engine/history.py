"""From samples to spans: ten seconds each for the last quarter of an hour, and whole minutes for whoever stores them.

Fed by the monitor once a second, whoever watches. What a request says of its times counts in the span that it ends in.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.hardware import Hardware
from engine.job import Outcome
from engine.sketch import Sketch, merged
from engine.spans import Span

if TYPE_CHECKING:
    from engine.monitor import Sample

STEP_S, MINUTE_S = 10.0, 60.0
RECENT = 90  # steps that are kept: a quarter of an hour
UNSTORED = 60  # minutes that wait at most for somebody to store them


class History:
    def __init__(self) -> None:
        self.recent: deque[Span] = deque(maxlen=RECENT)  # of STEP_S each
        self._steps, self._minutes = SpanMaker(STEP_S), SpanMaker(MINUTE_S)
        self._unstored: asyncio.Queue[Span] = asyncio.Queue(UNSTORED)

    def take(self, sample: "Sample", outcomes: Sequence[Outcome]) -> None:
        """The newest sample, with the requests that have ended since the one before."""
        if step := self._steps.take(sample, outcomes):
            self.recent.append(step)
        if minute := self._minutes.take(sample, outcomes):
            if self._unstored.full():
                self._unstored.get_nowait()
            self._unstored.put_nowait(minute)

    def gaps(self) -> Sketch:
        """The times between tokens of the last quarter of an hour."""
        return merged(step.gaps for step in self.recent)

    async def next_minute(self) -> Span:
        """The next minute that nobody has taken yet, once it is over."""
        return await self._unstored.get()


class SpanMaker:
    """Collects samples until a multiple of `length_s` on the clock has passed, so that spans begin at whole minutes."""

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._before: Sample | None = None  # the one that ended the span before
        self._samples: list[Sample] = []
        self._outcomes: list[Outcome] = []

    def take(self, sample: "Sample", outcomes: Sequence[Outcome]) -> Span | None:
        """The span that this sample completes, if it does."""
        before = self._before
        if before is None or sample.at < before.at:  # the first, or somebody has set the clock back
            self._begin(sample)
            return None
        self._samples.append(sample)
        self._outcomes += outcomes
        if int(before.at.timestamp() // self._length_s) == int(sample.at.timestamp() // self._length_s):
            return None
        made = _span(before, self._samples, self._outcomes, (sample.at - before.at).total_seconds())
        self._begin(sample)
        return made

    def _begin(self, sample: "Sample") -> None:
        self._before, self._samples, self._outcomes = sample, [], []


def _span(before: "Sample", samples: Sequence["Sample"], outcomes: Sequence[Outcome], seconds: float) -> Span:
    ttft, queue = Sketch(), Sketch()
    for outcome in outcomes:
        queue.add(outcome.queue_s)
        if outcome.ttft_s is not None:
            ttft.add(outcome.ttft_s)
    readings = [sample.hardware for sample in samples if sample.hardware]
    return Span(
        at=before.at,
        seconds=seconds,
        running=sum(sample.running for sample in samples) / len(samples),
        running_peak=max(sample.running for sample in samples),
        waiting=sum(sample.waiting for sample in samples) / len(samples),
        waiting_peak=max(sample.waiting for sample in samples),
        tokens=max(0, samples[-1].tokens - before.tokens),
        ended=Counter(str(outcome.status) for outcome in outcomes),
        refused=Counter(samples[-1].refused) - Counter(before.refused),
        ttft=ttft,
        gaps=merged(outcome.gaps for outcome in outcomes),
        queue=queue,
        cpu=_mean([reading.cpu_percent / 100 for reading in readings]),
        memory=max((reading.process_memory for reading in readings), default=None),
        gpu=_mean([share for reading in readings if (share := _gpu(reading)) is not None]),
        gpu_memory=max((_gpu_memory(reading) for reading in readings if reading.gpus), default=None),
    )


def _gpu(reading: Hardware) -> float | None:
    return _mean([gpu.utilization for gpu in reading.gpus if gpu.utilization is not None])


def _gpu_memory(reading: Hardware) -> int:
    return sum(gpu.memory_used for gpu in reading.gpus)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
