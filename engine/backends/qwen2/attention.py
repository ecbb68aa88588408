"""Pieces of sequences as one flat batch of tensors, and how each of them attends to what its slot of the cache holds.

Attention goes sequence by sequence for pieces of prompts, and over groups of neighbouring slots for decodes. Knows the
cache's tensors; nothing of weights, requests and policies.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

CALL_TOKENS = 256  # padding in a group of decodes that costs about as much as one more call of the attention
LONG = 15_000  # pairs of a token and what it sees, from which on two products and a softmax are faster than one call
SCORES = 1 << 24  # that are kept room for, 32 MB


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens of one sequence that go through the model in one step; those before are in the cache already."""

    slot: int
    start: int  # position of the first one
    tokens: Sequence[int]
    logits: int  # after how many of the last ones the logits are wanted
    is_prompt: bool = False  # that is read; else an answer's last token, and guesses of what follows

    @property
    def end(self) -> int:
        return self.start + len(self.tokens)


class Batch(Protocol):
    """Tokens that go through the model together, all on its device, answers' first. Each tensor is [tokens]."""

    ids: Tensor
    positions: Tensor
    slots: Tensor

    @property
    def answers(self) -> int:
        """How many of them are not of prompts."""

    @property
    def wanted(self) -> Tensor | slice:
        """After which of the tokens the logits are wanted, in the order that they are wanted in."""

    def attend(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """What each token sees; its own keys and values are in the cache already.

        `query` is [tokens, kv heads, query heads of each, head size], and so is the result.
        """


@dataclass(frozen=True, slots=True)
class _Decodes:
    """One token each of sequences in neighbouring slots."""

    rows: slice  # in the batch
    slots: slice
    length: int  # of the longest
    mask: Tensor | None  # [sequences, 1, 1, length], added to the scores; None for a single sequence


@dataclass(frozen=True, slots=True)
class Prompt:
    """Several tokens of one sequence."""

    rows: slice
    slot: int
    length: int
    mask: Tensor | None  # added to the scores of those that see; None: see attend_beginning
    is_long: bool  # of which the mask is [tokens, tokens]; of others [query heads of a kv head * tokens, length]


class Pieces:
    """A batch of whatever pieces: decodes first, by slot, then those with guesses, then prompts.

    `groups` is the query heads of a kv head.
    """

    def __init__(self, pieces: Sequence[Piece], groups: int, device: torch.device, dtype: torch.dtype) -> None:
        answers = [piece for piece in pieces if not piece.is_prompt]
        decodes = sorted((piece for piece in answers if len(piece.tokens) == 1), key=lambda piece: piece.slot)
        longer = [piece for piece in answers if len(piece.tokens) > 1] + [piece for piece in pieces if piece.is_prompt]
        flat = decodes + longer
        self.answers = sum(len(piece.tokens) for piece in answers)
        ends = accumulate(len(piece.tokens) for piece in flat)
        last = {id(piece): end for piece, end in zip(flat, ends, strict=True)}

        def tensor(numbers: list[int]) -> Tensor:
            return torch.tensor(numbers, dtype=torch.long, device=device)

        self.ids = tensor([token for piece in flat for token in piece.tokens])
        self.positions = tensor([at for piece in flat for at in range(piece.start, piece.end)])
        self.slots = tensor([piece.slot for piece in flat for _ in piece.tokens])
        self.wanted = tensor([at for piece in pieces for at in range(last[id(piece)] - piece.logits, last[id(piece)])])
        self.decodes = [_decodes(rows, decodes[rows], device, dtype) for rows in neighbours(decodes)]
        self.prompts = [_prompt(last[id(piece)], piece, groups, device, dtype) for piece in longer]

    def attend(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        if len(self.decodes) == 1 and not self.prompts:
            return _attend_decodes(query, keys, values, self.decodes[0])
        seen = torch.empty_like(query)
        for group in self.decodes:
            seen[group.rows] = _attend_decodes(query[group.rows], keys, values, group)
        for prompt in self.prompts:
            seen[prompt.rows] = attend_prompt(query[prompt.rows], keys, values, prompt)
        return seen


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
        mask = minus_infinity_where(hidden, dtype)[:, None, None]
    return _Decodes(rows, slice(decodes[0].slot, decodes[-1].slot + 1), length, mask)


def _prompt(end: int, piece: Piece, groups: int, device: torch.device, dtype: torch.dtype) -> Prompt:
    """`end` is that of its rows in the batch."""
    is_long = device.type == "cpu" and dtype == torch.bfloat16 and len(piece.tokens) * piece.end >= LONG
    mask = None
    if device.type == "cpu" or piece.start:
        seen_by = torch.arange(piece.start, piece.end, device=device)[:, None]
        sees = torch.arange(piece.start if is_long else 0, piece.end, device=device)
        mask = minus_infinity_where(sees > seen_by, dtype)
    rows = slice(end - len(piece.tokens), end)
    return Prompt(rows, piece.slot, piece.end, mask if mask is None or is_long else mask.repeat(groups, 1), is_long)


def minus_infinity_where(hidden: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(hidden.shape, dtype=dtype, device=hidden.device).masked_fill_(hidden, -torch.inf)


def _attend_decodes(query: Tensor, keys: Tensor, values: Tensor, group: _Decodes) -> Tensor:
    """The query heads of one kv head are the rows of one query, so no key is repeated (on a CPU seven times faster).

    `query` is [sequences, kv heads, query heads of each, head size], and so is the result.
    """
    near, length = group.slots, group.length
    return functional.scaled_dot_product_attention(
        query, keys[near, :, :length], values[near, :, :length], attn_mask=group.mask
    )


def attend_prompt(query: Tensor, keys: Tensor, values: Tensor, prompt: Prompt) -> Tensor:
    """As above, with the tokens of one sequence for rows as well, and a mask that says who sees whom.

    `query` is [tokens, kv heads, query heads of each, head size], and so is the result.
    """
    if prompt.mask is None:
        return attend_beginning(query, keys, values, prompt)
    tokens, kv_heads, groups, size = query.shape
    slot, length = slice(prompt.slot, prompt.slot + 1), prompt.length
    rows = query.permute(1, 2, 0, 3).reshape(1, kv_heads, groups * tokens, size)
    keys, values = keys[slot, :, :length], values[slot, :, :length]
    if prompt.is_long:
        seen = _attend_in_products(rows, keys, values, prompt.mask)
    else:
        seen = functional.scaled_dot_product_attention(rows, keys, values, attn_mask=prompt.mask)
    return seen.view(kv_heads, groups, tokens, size).permute(2, 0, 1, 3)


_kept = threading.local()


def _attend_in_products(rows: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """What torch's one call comes to, in two thirds of its time where much is seen in bfloat16 (docs/performance.md).

    The mask is that of the last tokens, which alone are hidden from anybody. As many query heads go together as their
    scores fit the memory that is kept for them: to get so much anew for each layer would take as long as the products.
    """
    (_, kv_heads, _, size), length, tokens = rows.shape, keys.shape[2], len(mask)
    rows, keys, values = rows[0] / math.sqrt(size), keys[0].transpose(1, 2), values[0]
    seen = torch.empty_like(rows)
    heads = max(1, SCORES // (kv_heads * tokens * length))
    for some, into in zip(rows.split(heads * tokens, 1), seen.split(heads * tokens, 1), strict=True):
        scores = _room(some, length)
        torch.bmm(some, keys, out=scores)
        scores.unflatten(1, (-1, tokens))[..., -tokens:].add_(mask)
        torch.softmax(scores, -1, out=scores)
        into.copy_(torch.bmm(scores, values))
    return seen


def _room(rows: Tensor, length: int) -> Tensor:
    """For the scores of rows that see so much: this thread's, until it asks again."""
    needed = rows.shape[0] * rows.shape[1] * length
    kept: Tensor | None = getattr(_kept, "scores", None)
    if kept is None or kept.numel() < needed:
        kept = _kept.scores = rows.new_empty(max(needed, SCORES))
    return kept[:needed].view(*rows.shape[:2], length)


def attend_beginning(query: Tensor, keys: Tensor, values: Tensor, prompt: Prompt) -> Tensor:
    """The first tokens of a sequence see each other alone, which CUDA's flash attention does without a mask."""
    tokens, kv_heads, groups, size = query.shape
    slot, length = slice(prompt.slot, prompt.slot + 1), prompt.length
    seen = functional.scaled_dot_product_attention(
        query.view(1, tokens, kv_heads * groups, size).transpose(1, 2),
        keys[slot, :, :length],
        values[slot, :, :length],
        is_causal=True,
        enable_gqa=True,
    )
    return seen[0].transpose(0, 1).view(tokens, kv_heads, groups, size)
