"""How far back one looks, and in which steps: the live quarter of an hour from memory, the rest from the store.

What was read is kept until the next step of time has passed, and shared by everybody who looks.
"""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from engine.history import RECENT, STEP_S
from engine.spans import Span, in_steps
from ui.desk import Desk

LATE = (
    2  # steps at the end that are read again: the last one is under way, and its last minute is written a little late
)


@dataclass(frozen=True, slots=True)
class Range:
    key: str
    length_s: float
    step_s: float
    stored: bool = True


RANGES = {
    each.key: each
    for each in (
        Range("live", RECENT * STEP_S, STEP_S, stored=False),
        Range("hour", 3600, 60),
        Range("day", 24 * 3600, 300),
        Range("week", 7 * 24 * 3600, 1800),
    )
}


@dataclass(frozen=True, slots=True)
class Steps:
    since: datetime
    step_s: float
    spans: Sequence[Span | None]

    @property
    def middles(self) -> list[datetime]:
        return [self.since + timedelta(seconds=self.step_s * (place + 0.5)) for place in range(len(self.spans))]


class Ranges:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._known: dict[str, Steps] = {}
        self._lock = asyncio.Lock()

    async def steps(self, range: Range) -> Steps:
        """The steps of this range up to now; the last one is still under way."""
        until = datetime.fromtimestamp(math.ceil(datetime.now(UTC).timestamp() / range.step_s) * range.step_s, UTC)
        since = until - timedelta(seconds=range.length_s)
        async with self._lock:
            known = self._known.get(range.key)
            if known is None or known.since != since:
                known = self._known[range.key] = await self._read(range, since, until, known)
        return known

    async def _read(self, range: Range, since: datetime, until: datetime, known: Steps | None) -> Steps:
        """Steps that were complete when they were read stay; only what came since is read."""
        kept = self._kept(known, since) if known else []
        begin = since + timedelta(seconds=range.step_s * len(kept))
        if range.stored:
            found: Sequence[Span] = await self._desk.store.samples.since(begin - timedelta(minutes=1))
        else:
            found = list(self._desk.monitor.history.recent)
        # In a thread: a week has ten thousand spans.
        new = await asyncio.to_thread(in_steps, found, since=begin, until=until, step_s=range.step_s)
        return Steps(since, range.step_s, [*kept, *new])

    def _kept(self, known: Steps, since: datetime) -> list[Span | None]:
        gone = round((since - known.since).total_seconds() / known.step_s)
        return list(known.spans[gone:-LATE]) if 0 <= gone < len(known.spans) else []
