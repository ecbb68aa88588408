"""Durations as counts in buckets, so that those of many minutes can be added up and still have percentiles.

The buckets grow by a fixed ratio, so that any percentile is within ACCURACY of the true one, however many sketches were
merged: the idea of DDSketch (Masson, Rim, Lee, VLDB 2019). Knows nothing of what the durations mean.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable

ACCURACY = 0.02  # relative
LEAST_S = 1e-4  # shorter ones count as this
_RATIO = (1 + ACCURACY) / (1 - ACCURACY)


class Sketch:
    """Counts of durations in seconds, by bucket."""

    __slots__ = ("counts",)

    def __init__(self, counts: dict[int, int] | None = None) -> None:
        self.counts: Counter[int] = Counter(counts or {})

    def add(self, seconds: float, times: int = 1) -> None:
        self.counts[math.ceil(math.log(max(seconds, LEAST_S), _RATIO))] += times

    @property
    def count(self) -> int:
        return self.counts.total()

    def percentile(self, share: float) -> float | None:
        """The duration below which this share of them lies, in seconds; None of nothing."""
        rank, below = share * (self.count - 1), 0
        for bucket in sorted(self.counts):
            below += self.counts[bucket]
            if below > rank:
                return 2 * _RATIO**bucket / (_RATIO + 1)
        return None

    def json(self) -> str:
        """The first bucket and the counts from it on: a list is read faster than an object with a key a bucket."""
        if not self.counts:
            return "[]"
        first, last = min(self.counts), max(self.counts)
        return json.dumps([first, *(self.counts[bucket] for bucket in range(first, last + 1))], separators=(",", ":"))


def read(text: str) -> Sketch:
    """The sketch that `Sketch.json` wrote."""
    first, *counts = json.loads(text) or [0]
    return Sketch({bucket: count for bucket, count in enumerate(counts, first) if count})


def merged(sketches: Iterable[Sketch]) -> Sketch:
    whole = Sketch()
    total = whole.counts
    for sketch in sketches:
        for bucket, count in sketch.counts.items():
            total[bucket] += count
    return whole
