"""Decodes in static shapes, which CUDA replays as one graph.

One token a sequence is hundreds of small kernels, and launching them one by one takes longer than what they compute. A
graph is launched as one, but wants the same shapes at the same addresses each time. So the rows are filled up to one of
a few numbers, the cache is read up to one of a few lengths, and tokens, positions and slots lie in buffers that stay.

Where there is no CUDA the same static step runs without a graph, which is how the tests compare it with the normal one.
"""

from collections.abc import Sequence

import torch
from loguru import logger
from torch import Tensor
from torch.nn import functional

from engine.backends.qwen2.attention import Piece, minus_infinity_where
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2

BATCHES = (1, 2, 4, 8, 16, 32, 64)
SHORTEST, LONGER = 256, 4  # tokens of the shortest cache that is read, and the factor to the next


class StaticDecodes:
    """A batch of one token each of sequences in any slots, whose caches are read up to `length` tokens."""

    wanted = slice(None)

    def __init__(self, numbers: Tensor, length: int, dtype: torch.dtype) -> None:
        """`numbers` is [3, sequences]: tokens, positions and slots."""
        self.ids, self.positions, self.slots = numbers
        self.answers = len(self.ids)
        self._length = length
        hidden = torch.arange(length, device=numbers.device) > self.positions[:, None]
        self._mask = minus_infinity_where(hidden, dtype)[:, None, None]

    def attend(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        near, content = (tensor[:, :, : self._length].index_select(0, self.slots) for tensor in (keys, values))
        return functional.scaled_dot_product_attention(query, near, content, attn_mask=self._mask)


class GraphedModel:
    """The model with one cache for good: steps of decodes alone take the static way, all others the usual one."""

    def __init__(self, model: Qwen2, cache: KVCache) -> None:
        self.device = model.device
        self._model, self._cache = model, cache
        self.lengths = lengths(cache.capacity)
        self.batches = [count for count in BATCHES if count < 2 * len(cache.slots)]
        self._numbers = torch.zeros(3, self.batches[-1], dtype=torch.long, device=self.device)
        self._graphs: dict[tuple[int, int], tuple[torch.cuda.CUDAGraph, Tensor]] = {}

    def record(self) -> None:
        """Record a graph for each number of rows and each length; the largest first, whose memory the others share."""
        pool = torch.cuda.graph_pool_handle()
        for rows in reversed(self.batches):
            for length in reversed(self.lengths):
                self._decode(rows, length)  # libraries set themselves up at the first use, which no graph may hold
                torch.cuda.synchronize(self.device)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, pool=pool):
                    logits = self._decode(rows, length)
                self._graphs[rows, length] = graph, logits

    def step(self, pieces: Sequence[Piece], cache: KVCache) -> Tensor:
        """As the model's. The logits stay until the next step."""
        assert cache is self._cache
        alone = all(len(piece.tokens) == piece.logits == 1 for piece in pieces)
        if not alone or len(pieces) > self.batches[-1]:
            return self._model.step(pieces, cache)
        rows = at_least(len(pieces), self.batches)
        length = at_least(max(piece.end for piece in pieces), self.lengths)
        self._numbers[:, :rows].copy_(torch.tensor(filled_up(pieces, rows)))
        return self._run(rows, length)[: len(pieces)]

    def _run(self, rows: int, length: int) -> Tensor:
        if (recorded := self._graphs.get((rows, length))) is None:
            return self._decode(rows, length)
        graph, logits = recorded
        graph.replay()
        return logits

    def _decode(self, rows: int, length: int) -> Tensor:
        return self._model.forward(StaticDecodes(self._numbers[:, :rows], length, self._model.dtype), self._cache)


def graphed(model: Qwen2, cache: KVCache) -> Qwen2 | GraphedModel:
    """The model with its graphs; as it is where there is no CUDA, or where they cannot be recorded."""
    if model.device.type != "cuda":
        return model
    faster = GraphedModel(model, cache)
    try:
        faster.record()
    except Exception as error:
        logger.opt(exception=error).warning("CUDA graphs cannot be recorded; decodes run without them")
        torch.cuda.empty_cache()
        return model
    return faster


def lengths(capacity: int) -> list[int]:
    """How far the cache may be read: a few lengths, of which the last is all of it."""
    found, length = [], SHORTEST
    while length < capacity:
        found.append(length)
        length *= LONGER
    return [*found, capacity]


def at_least(wanted: int, allowed: Sequence[int]) -> int:
    """The first of the ascending numbers that suffices."""
    return next(number for number in allowed if number >= wanted)


def filled_up(pieces: Sequence[Piece], rows: int) -> list[list[int]]:
    """Tokens, positions and slots. The last piece stands for missing rows too: what they write is the same again."""
    all_rows = [*pieces, *[pieces[-1]] * (rows - len(pieces))]
    return [
        [piece.tokens[0] for piece in all_rows],
        [piece.start for piece in all_rows],
        [piece.slot for piece in all_rows],
    ]
