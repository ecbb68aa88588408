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
                known = Steps(since, range.step_s, await self._read(range, since, until))
                self._known[range.key] = known
        return known

    async def _read(self, range: Range, since: datetime, until: datetime) -> list[Span | None]:
        if range.stored:
            spans: Sequence[Span] = await self._desk.store.samples.since(since - timedelta(minutes=1))
        else:
            spans = list(self._desk.monitor.history.recent)
        return in_steps(spans, since=since, until=until, step_s=range.step_s)
