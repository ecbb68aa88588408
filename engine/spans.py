"""What happened in a span of time, a minute for example, as numbers that can be added up to longer spans.

Holds no text and no names. Knows nothing of the service (engine/history.py makes spans) and nothing of storage.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from engine.sketch import Sketch, merged


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """From `at` on, for `seconds`. Means are over the span, peaks within it; memory in bytes, shares from 0 to 1."""

    at: datetime
    seconds: float
    running: float = 0.0  # mean
    running_peak: int = 0
    waiting: float = 0.0  # mean
    waiting_peak: int = 0
    tokens: int = 0  # generated
    ended: Mapping[str, int] = field(default_factory=dict)  # by status
    refused: Mapping[str, int] = field(default_factory=dict)  # by error code
    ttft: Sketch = field(default_factory=Sketch)  # from asking to the first token
    gaps: Sketch = field(default_factory=Sketch)  # between two tokens
    queue: Sketch = field(default_factory=Sketch)  # from asking to running
    cpu: float | None = None  # mean share of all cores; None where it was not read
    memory: int | None = None  # of this process, peak
    gpu: float | None = None  # mean share of the time in which a kernel ran
    gpu_memory: int | None = None  # by everybody, all GPUs together, peak


def joined(spans: Sequence[Span]) -> Span:
    """One span for these, which follow one another; at least one."""
    seconds = sum(span.seconds for span in spans)

    def mean(of: Callable[[Span], float | None]) -> float | None:
        told = [(value, span.seconds) for span in spans if (value := of(span)) is not None]
        weight = sum(part for _, part in told)
        return sum(value * part for value, part in told) / weight if weight else None

    def peak(of: Callable[[Span], int | None]) -> int | None:
        return max((value for span in spans if (value := of(span)) is not None), default=None)

    return Span(
        at=spans[0].at,
        seconds=seconds,
        running=mean(lambda span: span.running) or 0.0,
        running_peak=peak(lambda span: span.running_peak) or 0,
        waiting=mean(lambda span: span.waiting) or 0.0,
        waiting_peak=peak(lambda span: span.waiting_peak) or 0,
        tokens=sum(span.tokens for span in spans),
        ended=_total([span.ended for span in spans]),
        refused=_total([span.refused for span in spans]),
        ttft=merged(span.ttft for span in spans),
        gaps=merged(span.gaps for span in spans),
        queue=merged(span.queue for span in spans),
        cpu=mean(lambda span: span.cpu),
        memory=peak(lambda span: span.memory),
        gpu=mean(lambda span: span.gpu),
        gpu_memory=peak(lambda span: span.gpu_memory),
    )


def side_by_side(spans: Sequence[Span]) -> list[Span]:
    """Ascending spans of several processes as those of one: what lies beside one another in time is added up."""
    together: list[Span] = []
    for span in spans:
        last = together[-1] if together else None
        if last and span.at < last.at + timedelta(seconds=last.seconds / 2):
            together[-1] = _sum(last, span)
        else:
            together.append(span)
    return together


def _sum(one: Span, other: Span) -> Span:
    """Both at the same time. Memory is that of both processes; what a machine has, they may share."""
    as_one = joined([one, other])
    return replace(
        as_one,
        seconds=max(one.seconds, other.seconds),
        running=one.running + other.running,
        running_peak=one.running_peak + other.running_peak,
        waiting=one.waiting + other.waiting,
        waiting_peak=one.waiting_peak + other.waiting_peak,
        memory=(one.memory or 0) + (other.memory or 0) or None,
    )


def in_steps(spans: Sequence[Span], *, since: datetime, until: datetime, step_s: float) -> list[Span | None]:
    """Join ascending spans to steps of equal length; None where nothing is known, because no server ran.

    A span belongs where its middle is: it begins a little after or before the step that it fills.
    """
    count = round((until - since).total_seconds() / step_s)
    steps: list[list[Span]] = [[] for _ in range(count)]
    for span in spans:
        middle = span.at + timedelta(seconds=span.seconds / 2)
        place = int((middle - since) / timedelta(seconds=step_s))
        if middle >= since and place < count:
            steps[place].append(span)
    return [joined(step) if step else None for step in steps]


def _total(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)
