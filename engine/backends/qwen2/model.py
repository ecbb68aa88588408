"""The forward pass of Qwen2 and Qwen2.5 (arxiv.org/abs/2407.10671, section 2.2.1) over one flat batch of tokens.

All linears see one batch: decodes and pieces of prompts together. Attention goes sequence by sequence for pieces, and
over groups of neighbouring slots for decodes. Knows weights and tensors; nothing of requests, policies or text.
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.linear import Linear, load_linear
from engine.backends.qwen2.ready import WEIGHTS, Shape

LINEAR = re.compile(r"(?P<name>.+)\.(?P<part>weight.*|bias)")  # a tensor's name
CALL_TOKENS = 256  # padding in a group of decodes that costs about as much as one more call of the attention


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens of one sequence that go through the model in one step; those before are in the cache already."""

    slot: int
    start: int  # position of the first one
    tokens: Sequence[int]
    logits: int  # after how many of the last ones the logits are wanted

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)


@dataclass(frozen=True, slots=True)
class Layer:
    norm1: Tensor
    qkv: Linear
    o: Linear
    norm2: Tensor
    gate_up: Linear
    down: Linear


class Qwen2:
    def __init__(self, folder: Path, device: torch.device, *, unpack: bool) -> None:
        """Map the ready folder's weights and bring them to `device`."""
        self.shape = shape = Shape.read(folder)
        self.device, self.dtype = device, torch.float32 if unpack else torch.bfloat16
        tensors = load_file(folder / WEIGHTS)
        self.weights_bytes = sum(tensor.nbytes for tensor in tensors.values())  # as they are stored, not unpacked

        linears: defaultdict[str, dict[str, Tensor]] = defaultdict(dict)
        self.embedding = tensors["embedding"].to(device)
        linears["head"]["weight"] = self.embedding  # unless it has weights of its own
        for key, tensor in tensors.items():
            if found := LINEAR.match(key):
                linears[found["name"]][found["part"]] = tensor

        def linear(name: str) -> Linear:
            return load_linear(linears[name], device, unpack=unpack)

        def norm(name: str) -> Tensor:
            return tensors[name].to(device, self.dtype)

        def layer(i: int) -> Layer:
            return Layer(
                norm(f"layers.{i}.norm1"),
                linear(f"layers.{i}.qkv"),
                linear(f"layers.{i}.o"),
                norm(f"layers.{i}.norm2"),
                linear(f"layers.{i}.gate_up"),
                linear(f"layers.{i}.down"),
            )

        self.norm = norm("norm")
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:  # where weights are unpacked, one thread takes long
            head = pool.submit(linear, "head")
            self.layers = list(pool.map(layer, range(shape.layers)))
            self.head = head.result()
        self.cos, self.sin = rope_tables(shape, device, self.dtype)

    @torch.inference_mode()
    def step(self, pieces: Sequence[Piece], cache: KVCache) -> Tensor:
        """Run all pieces, write their keys and values to the cache, and return the logits that are wanted.

        They are [logits that are wanted, vocabulary] in the order of the pieces; empty if none are.
        """
        batch = _Batch(pieces, self.shape.heads // self.shape.kv_heads, self.device, self.dtype)
        cos, sin = self.cos[batch.positions, None], self.sin[batch.positions, None]
        x = self.embedding[batch.ids].to(self.dtype)
        for layer, keys, values in zip(self.layers, cache.keys, cache.values, strict=True):
            seen = self._attention(layer.qkv(self._norm(x, layer.norm1)), cos, sin, keys, values, batch)
            x = x + layer.o(seen)
            gate, up = layer.gate_up(self._norm(x, layer.norm2)).chunk(2, -1)
            x = x + layer.down(functional.silu(gate) * up)
        wanted = self._norm(x[batch.wanted], self.norm)
        return self.head(wanted) if len(wanted) else wanted

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(x, weight.shape, weight, self.shape.norm_epsilon)

    def _attention(
        self, mixed: Tensor, cos: Tensor, sin: Tensor, keys: Tensor, values: Tensor, batch: "_Batch"
    ) -> Tensor:
        """Rotate, store keys and values, and attend. `mixed` is [tokens, (heads + 2 kv heads) * head size]."""
        heads, kv_heads, size = self.shape.heads, self.shape.kv_heads, self.shape.head_size
        mixed = mixed.view(len(mixed), heads + 2 * kv_heads, size)
        rotated = mixed[:, : heads + kv_heads]
        rotated = rotated * cos + torch.cat([rotated[..., size // 2 :], rotated[..., : size // 2]], -1) * sin
        keys[batch.slots, :, batch.positions] = rotated[:, heads:]
        values[batch.slots, :, batch.positions] = mixed[:, heads + kv_heads :]
        query = rotated[:, :heads].view(-1, kv_heads, heads // kv_heads, size)
        seen = torch.empty_like(query)
        for group in batch.decodes:
            seen[group.rows] = _attend_decodes(query[group.rows], keys, values, group)
        for prompt in batch.prompts:
            seen[prompt.rows] = _attend_prompt(query[prompt.rows], keys, values, prompt)
        return seen.flatten(1)


@dataclass(frozen=True, slots=True)
class _Decodes:
    """One token each of sequences in neighbouring slots."""

    rows: slice  # in the batch
    slots: slice
    length: int  # of the longest
    mask: Tensor | None  # [sequences, 1, 1, length], added to the scores; None for a single sequence


@dataclass(frozen=True, slots=True)
class _Prompt:
    """Several tokens of one sequence."""

    rows: slice
    slot: int
    length: int
    mask: Tensor  # [query heads of a kv head * tokens, length], added to the scores


class _Batch:
    """The pieces as tensors: decodes first, by slot, then the others. `groups` is the query heads of each kv head."""

    def __init__(self, pieces: Sequence[Piece], groups: int, device: torch.device, dtype: torch.dtype) -> None:
        decodes = sorted((piece for piece in pieces if len(piece.tokens) == 1), key=lambda piece: piece.slot)
        prompts = [piece for piece in pieces if len(piece.tokens) > 1]
        flat = decodes + prompts
        ends = accumulate(len(piece.tokens) for piece in flat)
        last = {id(piece): end for piece, end in zip(flat, ends, strict=True)}

        def tensor(numbers: list[int]) -> Tensor:
            return torch.tensor(numbers, dtype=torch.long, device=device)

        self.ids = tensor([token for piece in flat for token in piece.tokens])
        self.positions = tensor([at for piece in flat for at in range(piece.start, piece.end)])
        self.slots = tensor([piece.slot for piece in flat for _ in piece.tokens])
        self.wanted = tensor([at for piece in pieces for at in range(last[id(piece)] - piece.logits, last[id(piece)])])
        self.decodes = [_decodes(rows, decodes[rows], device, dtype) for rows in neighbours(decodes)]
        self.prompts = [
            _Prompt(
                slice(last[id(piece)] - len(piece.tokens), last[id(piece)]),
                piece.slot,
                piece.end,
                _causal_mask(piece, device, dtype).repeat(groups, 1),
            )
            for piece in prompts
        ]


def neighbours(decodes: Sequence[Piece]) -> list[slice]:
    """Cut decodes, sorted by slot, into groups that one call of the attention can take.

    A group is in consecutive slots, so that its cache is a view, and is cut where padding the short ones to the longest
    would cost more than a call of their own.
    """
    groups, begin = [], 0
    for i in range(1, len(decodes) + 1):
        apart = i == len(decodes) or decodes[i].slot != decodes[i - 1].slot + 1
        if apart or _padding(decodes[begin : i + 1]) > CALL_TOKENS:
            groups.append(slice(begin, i))
            begin = i
    return groups


def _padding(decodes: Sequence[Piece]) -> int:
    ends = [piece.end for piece in decodes]
    return max(ends) * len(ends) - sum(ends)


def _decodes(rows: slice, decodes: Sequence[Piece], device: torch.device, dtype: torch.dtype) -> _Decodes:
    ends = torch.tensor([piece.end for piece in decodes], device=device)
    length = max(piece.end for piece in decodes)
    mask = None
    if len(decodes) > 1:
        hidden = torch.arange(length, device=device) >= ends[:, None]
        mask = _minus_infinity_where(hidden, dtype)[:, None, None]
    return _Decodes(rows, slice(decodes[0].slot, decodes[-1].slot + 1), length, mask)


def _causal_mask(piece: Piece, device: torch.device, dtype: torch.dtype) -> Tensor:
    positions = torch.arange(piece.start, piece.end, device=device)
    return _minus_infinity_where(torch.arange(piece.end, device=device) > positions[:, None], dtype)


def _minus_infinity_where(hidden: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)


def _attend_decodes(query: Tensor, keys: Tensor, values: Tensor, group: _Decodes) -> Tensor:
    """The query heads of one kv head are the rows of one query, so no key is repeated (on a CPU seven times faster).

    `query` is [sequences, kv heads, query heads of each, head size], and so is the result.
    """
    near, length = group.slots, group.length
    return functional.scaled_dot_product_attention(
        query, keys[near, :, :length], values[near, :, :length], attn_mask=group.mask
    )


def _attend_prompt(query: Tensor, keys: Tensor, values: Tensor, prompt: _Prompt) -> Tensor:
    """As above, with the tokens of one sequence for rows as well, and a mask that says who sees whom.

    `query` is [tokens, kv heads, query heads of each, head size], and so is the result.
    """
    tokens, kv_heads, groups, size = query.shape
    slot, length = slice(prompt.slot, prompt.slot + 1), prompt.length
    seen = functional.scaled_dot_product_attention(
        query.permute(1, 2, 0, 3).reshape(1, kv_heads, groups * tokens, size),
        keys[slot, :, :length],
        values[slot, :, :length],
        attn_mask=prompt.mask,
    )
    return seen.view(kv_heads, groups, tokens, size).permute(2, 0, 1, 3)


def rope_tables(shape: Shape, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines of rotary positions (arxiv.org/abs/2104.09864), [positions, head size]."""
    powers = torch.arange(0, shape.head_size, 2).float() / shape.head_size
    angles = torch.outer(torch.arange(shape.context_tokens).float(), shape.rope_theta**-powers)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([cos, cos], -1).to(device, dtype), torch.cat([-sin, sin], -1).to(device, dtype)
