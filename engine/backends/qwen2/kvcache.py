"""The KV cache: one slot a sequence, kept after its end as prefix cache until the room is needed.

Knows slots, the tokens whose keys and values each one holds, and the tensors themselves. Knows nothing of requests.
Owned by the generation thread.
"""

import math
import mmap
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.backends.qwen2.ready import Shape

BEYOND = 512  # tokens that a step may have written after those that it was said to hold


@dataclass(slots=True)
class Slot:
    index: int
    tokens: list[int] = field(default_factory=list)  # whose keys and values are in the cache, from position 0 on
    in_use: bool = False
    used_at: int = 0  # the cache's count of events, for least recently used
    ahead: list[int] = field(default_factory=list)  # what is likely to follow, to be read when there is nothing to do
    reach: int = 0  # most tokens that it has held


class KVCache:
    """`slots` sequences of at most `capacity` tokens each.

    `keys[layer]` and `values[layer]` are [slots, kv heads, capacity, head size], of the model's type. On a CPU their
    pages take memory only once they are written to.
    """

    def __init__(self, shape: Shape, slots: int, capacity: int, device: torch.device, dtype: torch.dtype) -> None:
        self.capacity = capacity
        self.bytes = slots * slot_bytes(shape, capacity, dtype)
        size = (slots, shape.kv_heads, capacity, shape.head_size)
        self.keys = [_zeros(size, device, dtype) for _ in range(shape.layers)]
        self.values = [_zeros(size, device, dtype) for _ in range(shape.layers)]
        self.slots = [Slot(index) for index in range(slots)]
        self._events = 0

    @property
    def in_use(self) -> int:
        return sum(slot.in_use for slot in self.slots)

    def cached(self, tokens: Sequence[int]) -> int:
        """How many of the first tokens need not be computed if the sequence were to start now."""
        return max(_usable(slot, tokens) for slot in self.slots)

    def take(self, tokens: Sequence[int]) -> tuple[Slot, int] | None:
        """Return a slot for a sequence that starts with `tokens`, and how many of them it holds; None if all are used.

        The slot of the longest common prefix is taken over if most of it is of use, as in a conversation's next turn.
        Otherwise the least recently used slot is taken, and a shared beginning, such as a system prompt, copied there.
        """
        free = [slot for slot in self.slots if not slot.in_use]
        if not free:
            return None
        best = max(self.slots, key=lambda slot: (_usable(slot, tokens), not slot.in_use))
        cached = _usable(best, tokens)
        slot = best
        if best.in_use or 2 * cached < len(best.tokens):
            slot = min(free, key=lambda slot: (bool(slot.tokens), slot.used_at))
        if slot is not best:
            self._copy(best, slot, cached)
        slot.reach = max(slot.reach, len(slot.tokens))
        slot.tokens, slot.ahead = list(tokens[:cached]), []
        slot.in_use = True
        self._touch(slot)
        return slot, cached

    def release(self, slot: Slot, ahead: Sequence[int] = ()) -> None:
        """Give the slot back; what it holds stays until the room is needed. `ahead` is likely to follow."""
        slot.in_use = False
        slot.ahead = list(ahead[: self.capacity - len(slot.tokens)])
        self._touch(slot)

    def to_read_ahead(self) -> Slot | None:
        """The slot that was given back last of those that something may be added to."""
        waiting = [slot for slot in self.slots if slot.ahead]
        return max(waiting, key=lambda slot: slot.used_at, default=None)

    def wipe(self, slot: Slot) -> None:
        """Forget what the slot holds. What is no number counts even where it is masked, so nothing of it may stay."""
        written = max(slot.reach, len(slot.tokens)) + BEYOND
        slot.tokens, slot.ahead, slot.reach = [], [], 0
        for tensor in (*self.keys, *self.values):
            tensor[slot.index, :, :written] = 0

    def clear(self) -> None:
        """Forget everything: after a failure nobody knows what the tensors hold."""
        for slot in self.slots:
            self.wipe(slot)
            slot.in_use = False

    def _copy(self, source: Slot, target: Slot, count: int) -> None:
        if count:
            for tensor in (*self.keys, *self.values):
                tensor[target.index, :, :count] = tensor[source.index, :, :count]

    def _touch(self, slot: Slot) -> None:
        self._events += 1
        slot.used_at = self._events


def _usable(slot: Slot, tokens: Sequence[int]) -> int:
    """Length of the common prefix, without the last token: that one must be computed to know what follows."""
    longest = min(len(slot.tokens), len(tokens) - 1)
    if slot.tokens[:longest] == tokens[:longest]:
        return longest
    return next(i for i, (old, new) in enumerate(zip(slot.tokens, tokens, strict=False)) if old != new)


def slot_bytes(shape: Shape, capacity: int, dtype: torch.dtype) -> int:
    """What one slot takes when it is full."""
    return capacity * shape.kv_numbers * dtype.itemsize


def _zeros(size: tuple[int, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Zeros; on a CPU in pages of their own, so that those that nobody has written to take no memory.

    Linux would make huge pages of 2 MB, which is what a slot's keys in a layer take: the first token would take it all.
    """
    if device.type != "cpu" or not hasattr(mmap, "MAP_PRIVATE"):
        return torch.zeros(size, dtype=dtype, device=device)
    memory = mmap.mmap(-1, math.prod(size) * dtype.itemsize, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(memory, dtype=dtype).view(size)
