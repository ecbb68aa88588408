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
        return json.dumps({str(bucket): count for bucket, count in sorted(self.counts.items())}, separators=(",", ":"))


def read(text: str) -> Sketch:
    """The sketch that `Sketch.json` wrote."""
    return Sketch({int(bucket): count for bucket, count in json.loads(text).items()})


def merged(sketches: Iterable[Sketch]) -> Sketch:
    whole = Sketch()
    for sketch in sketches:
        whole.counts.update(sketch.counts)
    return whole
