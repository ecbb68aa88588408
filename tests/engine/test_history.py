"""Sketches, spans and the history that is made of samples, with a clock of the test's own."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from engine.hardware import Gpu, Hardware
from engine.history import History, SpanMaker
from engine.job import Outcome
from engine.monitor import Sample, percentile
from engine.sketch import ACCURACY, Sketch, merged, read
from engine.spans import Span, in_steps, joined
from engine.types import Status
from tests.engine.kit import UnrulyBackend, ended, question, service_on

START = datetime(2026, 1, 1, tzinfo=UTC)


def machine(cpu: float = 50.0, memory: int = 100) -> Hardware:
    gpu = Gpu("a GPU", 1000, 400, None, 0.5, None, None)
    return Hardware((gpu, gpu), "a CPU", cpu, 1000, 500, memory)


def sample(second: float, running: int = 0, waiting: int = 0, tokens: int = 0, **refused: int) -> Sample:
    return Sample(START + timedelta(seconds=second), running, waiting, tokens, 0, refused, 0, machine())


def outcome(status: Status, queue_s: float = 1.0, ttft_s: float | None = 2.0, *gaps: float) -> Outcome:
    sketch = Sketch()
    for gap in gaps:
        sketch.add(gap)
    return Outcome(0, status, queue_s, ttft_s, 3, 10, gaps=sketch)


@pytest.mark.parametrize("share", [0.0, 0.5, 0.95, 1.0])
def test_percentiles_of_merged_sketches_are_close_to_the_true_ones(share: float) -> None:
    draw = random.Random(7)
    values = sorted(draw.lognormvariate(0, 2) for _ in range(5000))
    parts = [Sketch() for _ in range(10)]
    for number, value in enumerate(values):
        parts[number % 10].add(value)
    found = merged(read(part.json()) for part in parts).percentile(share)
    assert found == pytest.approx(percentile(values, share), rel=ACCURACY + 0.01)


def test_a_sketch_of_nothing_has_no_percentile_and_zero_is_a_very_short_time() -> None:
    assert Sketch().percentile(0.5) is None
    instant = Sketch()
    instant.add(0.0)
    assert instant.percentile(0.5) == pytest.approx(1e-4, rel=0.05)


def test_a_span_sums_up_its_samples_and_what_ended_in_it() -> None:
    maker = SpanMaker(3)
    assert maker.take(sample(0, tokens=100, queue_full=1), []) is None
    assert maker.take(sample(1, running=1, tokens=110), [outcome(Status.DONE, 1, 2, 0.1, 0.3)]) is None
    assert maker.take(sample(2, running=2, waiting=3, tokens=120), [outcome(Status.FAILED, 5, None)]) is None
    span = maker.take(sample(3, running=3, tokens=160, queue_full=3, paused=1), [])
    assert span is not None
    assert (span.at, span.seconds, span.tokens) == (START, 3, 60)
    assert (span.running, span.running_peak, span.waiting, span.waiting_peak) == (2, 3, 1, 3)
    assert (span.ended, span.refused) == ({"done": 1, "failed": 1}, {"queue_full": 2, "paused": 1})
    assert (span.ttft.count, span.queue.count, span.gaps.count) == (1, 2, 2)
    assert (span.cpu, span.memory, span.gpu, span.gpu_memory) == (0.5, 100, 0.5, 800)
    assert maker.take(sample(4, tokens=160), []) is None  # the next one has begun
    assert [maker.take(sample(second, tokens=170), []) is None for second in (5, 6)] == [True, False]


def test_a_clock_that_is_set_back_begins_anew() -> None:
    maker = SpanMaker(2)
    maker.take(sample(100, tokens=5), [])
    assert maker.take(sample(2, tokens=6), []) is None
    assert maker.take(sample(3, tokens=7), []) is None
    span = maker.take(sample(4, tokens=9), [])
    assert span is not None
    assert (span.at, span.tokens) == (START + timedelta(seconds=2), 3)


async def test_the_history_keeps_a_quarter_of_an_hour_and_hands_over_minutes() -> None:
    history = History()
    for second in range(1201):
        history.take(sample(second, tokens=second), [])
    assert len(history.recent) == 90
    assert history.recent[-1].at == START + timedelta(seconds=1190)
    minutes = [await history.next_minute() for _ in range(20)]
    assert [(minute.seconds, minute.tokens) for minute in minutes] == [(60, 60)] * 20


async def test_minutes_that_nobody_stores_do_not_pile_up() -> None:
    history = History()
    for second in range(0, 61 * 100 + 1):
        history.take(sample(second), [])
    first = await history.next_minute()
    assert first.at > START


def test_spans_join_by_their_lengths_and_gaps_stay_gaps() -> None:
    def span(minute: int, seconds: float = 60, running: float = 0, peak: int = 0, cpu: float | None = None) -> Span:
        at = START + timedelta(minutes=minute)
        return Span(at=at, seconds=seconds, running=running, running_peak=peak, cpu=cpu, ended={"done": 1})

    whole = joined([span(0, 60, 1, 4, 0.5), span(1, 30, 4, 2)])
    assert (whole.seconds, whole.running, whole.running_peak, whole.cpu) == (90, 2, 4, 0.5)
    assert whole.ended == {"done": 2}
    assert whole.gpu is whole.memory is None
    until = START + timedelta(minutes=20)
    steps = in_steps([span(-1), span(0), span(4), span(10), span(20)], since=START, until=until, step_s=300)
    assert [step.ended if step else None for step in steps] == [{"done": 2}, None, {"done": 1}, None]


async def test_the_gaps_between_tokens_are_measured_as_they_come() -> None:
    service = await service_on(UnrulyBackend(), drain_s=0)
    await ended(await service.submit(question("hello")))
    (outcome,) = service.recent
    assert outcome.gaps.count == outcome.completion_tokens - 1 == 2
    await service.stop()
