"""Prompt-lookup decoding: what followed the last words where they stood before is guessed to follow now.

A step computes the guess together with the last token, which costs little while few answers run, and keeps as much of
it as the model would have said by itself: the answer is the same, only sooner (speculative decoding, arxiv.org/abs/
2211.17192, with the prompt as the draft, as Apoorv Saxena proposed in 2023).

Pure policy: tokens and measured costs in, numbers of tokens out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.backends.qwen2.scheduler import Costs

WORDS = 3  # tokens that must have stood before, in this order
FIRST = 0.6  # chance of a guessed token to be right, before anything is known
SMOOTHING = 0.15  # weight of the newest guess
FORGIVING = 0.02  # how fast an answer whose guesses were wrong is tried again, for each that was not made


@dataclass(slots=True)
class Lookup:
    """Guesses for one answer. `tokens` is the stream's own list, prompt and answer, and grows."""

    tokens: list[int]
    chance: float = FIRST
    guessed: int = 0
    right: int = 0
    _next: dict[tuple[int, ...], int] = field(default_factory=dict)  # where the token after these words stands
    _indexed: int = WORDS  # ends of words up to here are in it

    def guess(self, most: int) -> list[int]:
        """At most so many tokens that may come next; empty where the last words are new."""
        for end in range(self._indexed, len(self.tokens)):
            self._next[tuple(self.tokens[end - WORDS : end])] = end
        self._indexed = max(self._indexed, len(self.tokens))
        at = self._next.get(tuple(self.tokens[-WORDS:]))
        return [] if at is None else self.tokens[at : at + most]

    def learn(self, guessed: int, right: int) -> None:
        """Take into account how many of the guessed tokens were right, up to the first that was not."""
        self.guessed += guessed
        self.right += right
        for good in [1.0] * right + [0.0] * (right < guessed):
            self.chance += SMOOTHING * (good - self.chance)

    def forgive(self) -> None:
        self.chance += FORGIVING * (FIRST - self.chance)

    def expected(self, length: int) -> float:
        """Tokens that a step brings with a guess of this length: those that are right, and the one after."""
        return sum(self.chance**right for right in range(length + 1))


def worth_guessing(lookups: Sequence[tuple[Lookup, list[int]]], streams: int, costs: Costs, most: int) -> int:
    """The longest guess, 0 to `most`, that brings most tokens a second, when so many streams decode.

    `lookups` are the streams that have a guess, each with its own.
    """

    def tokens_per_second(length: int) -> float:
        tokens, rows = float(streams), streams
        for lookup, guess in lookups:
            taken = min(length, len(guess))
            tokens += lookup.expected(taken) - 1
            rows += taken
        return tokens / (costs.decodes(rows) or 1.0)

    return max(range(most + 1), key=tokens_per_second)
