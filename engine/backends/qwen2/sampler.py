"""Which token comes next: temperature, top-p, top-k, penalties, schema and seed, each request by its own.

Knows logits and sampling values; nothing of text or of the model.

A seed gives the same random numbers whatever else is in the batch: one number a token from the request's own generator.
The logits themselves may differ in the last digit with the size of the batch, because the matrix product then adds in
another order; so the same seed gives the same text as long as no choice lies within that. In bfloat16 that digit is
coarse enough to be seen; in float32 (see linear.py) it is not.
"""

import math
import random
from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from engine.types import Sampling

FEW = 1024  # a top-k up to this is looked for by selection; anything above sorts the whole vocabulary


class Constraint(Protocol):
    """Which tokens may come next, whatever the reason: see engine/backends/qwen2/schema.py."""

    def allowed(self, count: int) -> Tensor | None:
        """True for each of `count` tokens that may come next; None when that cannot be found out any more."""

    def take(self, token: int) -> None:
        """Go on by a token that was allowed."""


class Chooser:
    """How one request chooses: its sampling values, its generator and, for the penalties, the tokens so far."""

    def __init__(
        self,
        sampling: Sampling,
        prompt: Sequence[int],
        max_tokens: int,
        device: torch.device,
        constraint: Constraint | None = None,
    ) -> None:
        self.sampling = sampling
        self.constraint = constraint
        self.told: tuple[float, list[tuple[int, float]]] | None = None  # logprob of the last token, and the likeliest
        seed = sampling.seed
        # No secret is drawn but the next token, and the same seed has to draw the same again.
        self._random = random.Random(None if seed is None else seed % 2**64)  # nosec B311
        self._prompt_count = self._count = len(prompt)
        self._seen: Tensor | None = None
        self._for_answer = bool(sampling.frequency_penalty or sampling.presence_penalty)
        if sampling.repetition_penalty != 1 or self._for_answer:
            self._seen = torch.zeros(len(prompt) + max_tokens, dtype=torch.long, device=device)
            self._seen[: self._count] = torch.tensor(prompt, device=device)

    def draw(self) -> float:
        """The next random number in [0, 1)."""
        return self._random.random()

    def note(self, token: int) -> None:
        """Take a chosen token into account."""
        if self.constraint:
            self.constraint.take(token)
        if self._seen is not None:
            self._seen[self._count] = token
            self._count += 1

    def shape(self, logits: Tensor) -> None:
        """Make a row of logits this request's own, in place. A schema that cannot go on leaves no finite number."""
        self._penalize(logits)
        if self.constraint:
            allowed = self.constraint.allowed(len(logits))
            if allowed is None:
                logits.fill_(math.nan)
            else:
                logits.masked_fill_(~allowed.to(logits.device), -math.inf)

    def tell(self, logits: Tensor, token: int) -> None:
        """Keep the probability of the chosen token, and of the likeliest, as the model gave them."""
        logprobs = logits.log_softmax(-1)
        best, candidates = logprobs.topk(self.sampling.logprobs or 0)
        self.told = float(logprobs[token]), list(zip(candidates.tolist(), best.tolist(), strict=True))

    def _penalize(self, logits: Tensor) -> None:
        """Make tokens less likely that came before.

        Repetition: those of prompt and answer (arxiv.org/abs/1909.05858, section 4.1). Frequency and presence: those
        of the answer, as the reference of OpenAI's API defines them.
        """
        if self._seen is None:
            return
        seen, penalty = self._seen[: self._count], self.sampling.repetition_penalty
        if penalty != 1:
            values = logits[seen]
            logits[seen] = torch.where(values > 0, values / penalty, values * penalty)
        if self._for_answer:
            said, times = self._seen[self._prompt_count : self._count].unique(return_counts=True)
            logits[said] -= self.sampling.frequency_penalty * times + self.sampling.presence_penalty


@torch.inference_mode()
def sample(logits: Tensor, choosers: Sequence[Chooser]) -> list[int | None]:
    """Choose a token a row of `logits` [rows, vocabulary]; None where the row holds no finite maximum."""
    logits = logits.to(torch.float32, copy=True)  # choosers change their rows
    asked = {row: logits[row].clone() for row, one in enumerate(choosers) if one.sampling.logprobs is not None}
    for row, chooser in zip(logits, choosers, strict=True):
        chooser.shape(row)
    tokens: list[int | None] = [None] * len(choosers)
    for k, rows in _alike(choosers).items():
        chosen = logits if len(rows) == len(choosers) else logits[rows]
        picks = _pick(chosen, k or logits.shape[1], [choosers[row] for row in rows])
        for row, token in zip(rows, picks, strict=True):
            tokens[row] = token
    for row, before in asked.items():
        if (token := tokens[row]) is not None:
            choosers[row].tell(before, token)
    return tokens


def _alike(choosers: Sequence[Chooser]) -> dict[int, list[int]]:
    """Rows that can be treated at once, by how many candidates are looked for; 0 is the whole vocabulary."""
    groups: dict[int, list[int]] = {}
    for row, chooser in enumerate(choosers):
        k = 1 if chooser.sampling.temperature == 0 else chooser.sampling.top_k
        groups.setdefault(k if k <= FEW else 0, []).append(row)
    return groups


def _pick(logits: Tensor, k: int, choosers: Sequence[Chooser]) -> list[int | None]:
    best, candidates = _most_likely(logits, min(k, logits.shape[1]))
    finite = best[:, 0].isfinite().tolist()
    column = torch.zeros(len(choosers), 1, dtype=torch.long, device=logits.device)
    if k > 1:
        column = _draw(best, choosers)
    picked = candidates.gather(1, column)[:, 0].tolist()
    return [token if good else None for token, good in zip(picked, finite, strict=True)]


def _most_likely(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest values of each row in falling order, and where they are."""
    if k == 1:
        best, candidates = logits.max(-1, keepdim=True)
    elif k <= FEW:
        best, candidates = logits.topk(k)
    else:
        best, candidates = logits.sort(descending=True)
    return best, candidates


def _draw(best: Tensor, choosers: Sequence[Chooser]) -> Tensor:
    """Draw a column of `best` [rows, candidates, falling] within top-p, by one random number a row.

    Top-p keeps the smallest number of candidates whose probabilities reach p (arxiv.org/abs/1904.09751).
    """

    def column(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float64, device=best.device)[:, None]

    temperature = column([chooser.sampling.temperature for chooser in choosers])
    top_p = column([chooser.sampling.top_p for chooser in choosers])
    probabilities = (best.double() / temperature).softmax(-1)
    reached = probabilities.cumsum(-1)
    kept = probabilities.masked_fill(reached - probabilities >= top_p, 0.0)
    kept[:, 0] = probabilities[:, 0]
    sums = kept.cumsum(-1)
    thresholds = column([chooser.draw() for chooser in choosers]) * sums[:, -1:]
    return (sums <= thresholds).sum(-1, keepdim=True).clamp_(max=best.shape[1] - 1)
