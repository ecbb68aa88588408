"""Which tokens go into the next step: every decode, plus a bounded piece of prefill, the shortest prompt first.

Pure policy: no tensors, no I/O, no clock of its own (times are passed in, in seconds). Tested by simulation.

A decode never waits for a prompt: while answers stream, the prefill of one step may take PATIENCE times what the
decodes take, by measured cost, so that no gap between two tokens is longer than 1 + PATIENCE usual ones (and SPARE more
where that spares a prompt another step). A long prompt lets short ones pass, but whoever has waited longest gets SHARE
of every step's prefill, so that a long prompt comes to its end under any load, and never makes a short one wait for
more than that share.
"""

from collections import Counter
from collections.abc import Callable
from collections.abc import Sequence as ListOf
from dataclasses import dataclass, field
from typing import TypeVar

PATIENCE = 2.5  # prefill in a step that decodes, in decode times
LONGEST_STEP_S = 0.5  # of prefill alone: how long a new request or a cancellation may have to wait
FEWEST, MOST = 16, 512  # tokens of prefill in a step, whatever they cost
SHARE = 0.25  # of a step's prefill, for the one that has waited longest
SPARE = 0.25  # of a step's prefill on top, where that brings a prompt to its end: a further step costs more
SMOOTHING = 0.2  # weight of the newest measurement


@dataclass(slots=True, eq=False, kw_only=True)
class Sequence:
    """Tokens of a prompt and its answer, of which the first `computed` are in the cache."""

    tokens: list[int]
    arrived_at: float
    slotted: bool = False  # has a place in the cache
    computed: int = 0
    cached: int = 0  # of the prompt, found in the cache

    @property
    def pending(self) -> int:
        """Tokens that are still to be computed; without a slot, what will be left if the cache stays as it is."""
        return len(self.tokens) - (self.computed if self.slotted else self.cached)


@dataclass(slots=True)
class Costs:
    """What a step takes, learnt from steps. Seconds.

    All weights are read once a step, whatever is in it: that is in the time of the decodes, also of a single one. Each
    further row costs about the same, be it of a prompt or of a guess. Without that distinction small pieces of a prompt
    would seem dear, and would be made smaller for it.
    """

    row_s: float = 0.005
    decode_s: dict[int, float] = field(default_factory=dict)  # by their number

    @staticmethod
    def of(rows: int, reading: float, decode: float) -> "Costs":
        """From one piece of a prompt, of so many rows, and one decode."""
        return Costs(max(reading - decode, 1e-6) / rows, {1: decode})

    def decodes(self, count: int) -> float:
        """Expected time of that many decodes, from the nearest number that was measured; 0 if none was."""
        if not count or not self.decode_s:
            return 0.0
        near = min(self.decode_s, key=lambda known: abs(known - count))
        return self.decode_s[near] + max(0, count - near) * self.row_s

    def learn(self, decodes: int, prefill: int, seconds: float) -> None:
        if not prefill:
            known = self.decode_s.get(decodes, seconds)
            self.decode_s[decodes] = known + SMOOTHING * (seconds - known)
        elif seconds > (base := self.decodes(decodes or 1)):
            self.row_s += SMOOTHING * ((seconds - base) / prefill - self.row_s)


S = TypeVar("S", bound=Sequence)


@dataclass(slots=True)
class Scheduler:
    costs: Costs = field(default_factory=Costs)

    def schedule(self, sequences: ListOf[S], take_slot: Callable[[S], bool]) -> dict[S, int]:
        """How many tokens of which sequence the next step computes.

        `take_slot` gives a sequence that has none a slot, with what is cached of it; False if no slot is free.
        """
        plan = Counter({sequence: 1 for sequence in sequences if sequence.slotted and sequence.pending == 1})
        prompts = [sequence for sequence in sequences if sequence not in plan]
        budget = self.budget(len(plan))
        spare = int(budget * SPARE)
        oldest = sorted(prompts, key=lambda sequence: sequence.arrived_at)[:1]
        for sequence, share in [(s, int(budget * SHARE) or 1) for s in oldest] + [
            (s, budget) for s in sorted(prompts, key=lambda sequence: sequence.pending)
        ]:
            if budget > 0 and (sequence.slotted or take_slot(sequence)):
                rest, room = sequence.pending - plan[sequence], min(share, budget)
                count = rest if rest <= room + spare else room
                plan[sequence] += count
                budget -= count
        return dict(plan)

    def budget(self, decodes: int) -> int:
        """Tokens of prefill that the next step may compute beside so many decodes."""
        alone = LONGEST_STEP_S - self.costs.decodes(1)
        seconds = PATIENCE * self.costs.decodes(decodes) if decodes else alone
        return max(FEWEST, min(MOST, int(seconds / self.costs.row_s)))
