"""Minutes in the store: what is read is what was written, and old ones go."""

from datetime import UTC, datetime, timedelta

from engine.sketch import Sketch
from engine.spans import Span
from storage import Store
from storage.deleting import Due
from storage.retention import Days
from storage.samples import KEPT


def minute(at: datetime, **values: object) -> Span:
    return Span(at=at, seconds=60.5, **values)  # type: ignore[arg-type]  # a test's own values


async def test_a_minute_is_kept_with_all_that_it_holds(store: Store) -> None:
    now = datetime.now(UTC)
    ttft = Sketch()
    ttft.add(0.4, times=3)
    full = minute(
        now,
        running=1.5,
        running_peak=3,
        waiting=0.25,
        waiting_peak=1,
        tokens=900,
        ended={"done": 3},
        refused={"queue_full": 2},
        ttft=ttft,
        cpu=0.5,
        memory=6 * 2**30,
        gpu=0.75,
        gpu_memory=80 * 2**30,
    )
    await store.samples.add(full)
    await store.samples.add(minute(now - timedelta(minutes=1)))
    before, kept = await store.samples.since(now - timedelta(minutes=5))
    assert (kept.at, kept.tokens, kept.memory, kept.gpu_memory) == (now, 900, 6 * 2**30, 80 * 2**30)
    assert (kept.ended, kept.refused, kept.ttft.counts) == ({"done": 3}, {"queue_full": 2}, ttft.counts)
    assert (kept.running, kept.waiting, kept.cpu, kept.gpu, kept.seconds) == (1.5, 0.25, 0.5, 0.75, 60.5)
    assert (before.cpu, before.memory, before.gpu, before.ttft.count) == (None, None, None, 0)


async def test_minutes_are_kept_for_a_bounded_time(store: Store) -> None:
    now = datetime.now(UTC)
    ages = (KEPT + timedelta(hours=1), KEPT - timedelta(hours=1), timedelta())
    for age in ages:
        await store.samples.add(minute(now - age))
    year = timedelta(days=365)
    assert len(await store.samples.since(now - year)) == 3  # a clock that was just set deletes nothing
    await store.samples.trim()
    assert [span.at for span in await store.samples.since(now - year)] == [now - age for age in ages[1:]]


async def test_minutes_go_earlier_where_retention_says_so(store: Store) -> None:
    now = datetime.now(UTC)
    for days in (0, 1, 8, 9):
        await store.samples.add(minute(now - timedelta(days=days)))
    keep: Days = {"samples": 7}
    assert (await store.retention.plan(keep, now))["samples"] == Due(2)
    assert await store.retention.enforce(keep, now) == {"exchanges": 0, "audit": 0, "samples": 2}
    assert len(await store.samples.since(now - KEPT)) == 2
    assert (await store.retention.enforce({"samples": 0}, now))["samples"] == 0  # keeps what there is


async def test_minutes_of_several_processes_are_added_up_and_those_of_one_follow_one_another(store: Store) -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    for seconds, running in ((0.2, 1.5), (0.7, 2.0), (60.3, 1.0), (60.4, 1.0)):
        at = now + timedelta(seconds=seconds)
        await store.samples.add(minute(at, running=running, running_peak=3, tokens=100, ended={"done": 1}, memory=10))
    first, second = await store.samples.since(now)
    assert (first.running, first.running_peak, first.tokens, first.seconds) == (3.5, 6, 200, 60.5)
    assert (first.ended, first.memory, second.running) == ({"done": 2}, 20, 2.0)
