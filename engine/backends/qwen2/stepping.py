"""One step of everything that runs: schedule -> step -> sample -> tell what each answer goes on with.

Knows the order of things, and how one request fails without the others. The model and the cache are given to it. How
requests come and go, and where events are brought, is the generation thread's (worker.py), which calls it.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Protocol, TypeVar

import torch
from loguru import logger
from torch import Tensor

from engine.backends import Guesses
from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.halving import in_parts, is_exhausted
from engine.backends.qwen2.kvcache import KVCache, Slot
from engine.backends.qwen2.lookup import worth_guessing
from engine.backends.qwen2.sampler import sample
from engine.backends.qwen2.scheduler import Costs, Scheduler
from engine.backends.qwen2.stream import Stream
from engine.errors import BackendFailed, EngineError
from engine.types import Done, Event

WARM = 16  # tokens of the prompt that is read first of all
FAILED = "The engine failed while it worked on this request; ask again."
OUT_OF_MEMORY = "The engine ran out of memory while it worked on this request; ask again, with a shorter prompt."
R = TypeVar("R")
Tell = Callable[[Stream, Event], None]
Close = Callable[[Stream, Event | EngineError], None]


class Model(Protocol):
    device: torch.device

    def step(self, pieces: Sequence[Piece], cache: KVCache) -> Tensor: ...


class Stepper:
    def __init__(self, model: Model, cache: KVCache, lookahead: int, tell: Tell, close: Close) -> None:
        """`close` is told the last event of a stream, and gives its slot back."""
        self.scheduler = Scheduler()
        self.guesses = Guesses()  # of all answers
        self._model, self._cache, self._lookahead = model, cache, lookahead
        self._tell, self._close = tell, close

    def step(self, streams: Sequence[Stream]) -> None:
        """Go on with all of them by what one step computes. Whom it fails alone, fails alone.

        Raises what the device raises where it computes for nobody any more, but for lack of memory.
        """
        began = time.monotonic()
        plan = self.scheduler.schedule(streams, self._take_slot)
        if not plan:  # all have been cancelled; the CPUs' kernel for packed weights divides by the number of rows
            return
        guesses = self._guesses(plan)
        pieces = {stream: _piece(stream, count, guesses.get(stream, [])) for stream, count in plan.items()}
        for part, logits in self._in_parts(lambda some: self._compute([pieces[one] for one in some]), list(pieces)):
            for stream in part:
                stream.compute(plan[stream])
            self._choose({stream: pieces[stream] for stream in part if pieces[stream].logits}, logits)
        self.scheduler.costs.learn(*_rows(pieces.values()), time.monotonic() - began)

    def _compute(self, pieces: list[Piece]) -> Tensor:
        return self._model.step(pieces, self._cache)

    def _in_parts(self, work: Callable[[list[Stream]], R], streams: list[Stream]) -> Iterator[tuple[list[Stream], R]]:
        """Work for all of them, or for as many at once as it succeeds with; whom it fails alone, fails.

        Raises the error where it fails them all: it may be the device's.
        """
        failures, done = list[Exception](), False

        def give_up(stream: Stream, error: Exception) -> None:
            self._fail(stream, error, OUT_OF_MEMORY if is_exhausted(error) else FAILED)
            failures.append(error)

        for part in in_parts(work, streams, give_up, self._model.device):
            done = True
            yield part
        unexplained = [error for error in failures if not is_exhausted(error)]
        if unexplained and not done:
            raise unexplained[-1]

    def _guesses(self, plan: dict[Stream, int]) -> dict[Stream, list[int]]:
        """What may come next in answers, as far as it is worth trying; nothing while a prompt is read."""
        if not self._lookahead or any(stream.reads for stream in plan):
            return {}
        found = {stream: stream.lookup.guess(min(self._lookahead, stream.room - 1)) for stream in plan}
        found = {stream: guess for stream, guess in found.items() if guess}
        lookups = [(stream.lookup, guess) for stream, guess in found.items()]
        length = worth_guessing(lookups, len(plan), self.scheduler.costs, self._lookahead)
        if not length:
            for lookup, _ in lookups:
                lookup.forgive()
        return {stream: guess[:length] for stream, guess in found.items()}

    def _choose(self, pieces: dict[Stream, Piece], logits: Tensor) -> None:
        """Choose the tokens that follow, and go on along each guess for as long as it is what was chosen."""
        ends = accumulate(piece.logits for piece in pieces.values())
        rows = {stream: end - piece.logits for (stream, piece), end in zip(pieces.items(), ends, strict=True)}
        right = 0
        while rows:
            going_on = {}
            for stream, token in self._sample(logits, {stream: row + right for stream, row in rows.items()}):
                self._advance(stream, token)
                guess = pieces[stream].tokens[1:] if pieces[stream].logits > 1 else []
                if stream.slot and right < len(guess) and guess[right] == token:
                    stream.compute(1)
                    going_on[stream] = rows[stream]
                else:
                    stream.lookup.learn(len(guess), right)
                    self.guesses.learn(len(guess), right)
            rows = going_on
            right += 1

    def _sample(self, logits: Tensor, rows: dict[Stream, int]) -> Iterator[tuple[Stream, int | None]]:
        """The token of each stream, chosen by its row of the logits."""

        def work(streams: list[Stream]) -> list[int | None]:
            asked = logits if len(streams) == len(logits) else logits[[rows[stream] for stream in streams]]
            return sample(asked, [stream.chooser for stream in streams])

        for streams, tokens in self._in_parts(work, list(rows)):
            yield from zip(streams, tokens, strict=True)

    def _take_slot(self, stream: Stream) -> bool:
        if taken := self._cache.take(stream.tokens):
            stream.slot, stream.cached = taken
            stream.slotted, stream.computed = True, stream.cached
        return stream.slotted

    def _advance(self, stream: Stream, token: int | None) -> None:
        try:
            if token is None:
                raise ArithmeticError("the model returned no finite number")
            events = stream.take(token)
        except Exception as error:
            self._fail(stream, error, FAILED)
            return
        for event in events[:-1]:
            self._tell(stream, event)
        if events and isinstance(events[-1], Done):
            self._close(stream, events[-1])
        elif events:
            self._tell(stream, events[-1])

    def _fail(self, stream: Stream, error: Exception, said: str) -> None:
        """End one request. What it has left in the cache may be no number, which would spread from there."""
        logger.opt(exception=error).error("one request failed; the others go on")
        if stream.slot:
            self._cache.wipe(stream.slot)
        self._close(stream, BackendFailed(said))

    def read_ahead(self, slot: Slot) -> None:
        """Add to a slot that nobody uses what is likely to follow, so that it need not be read later.

        Where the memory does not suffice, the slot is given up and nobody is told: nobody has asked for it.
        """
        tokens, slot.ahead = slot.ahead, []
        piece = Piece(slot.index, len(slot.tokens), tokens, logits=0, is_prompt=True)

        def give_up(_: Piece, error: Exception) -> None:
            if not is_exhausted(error):
                raise error
            self._cache.wipe(slot)

        for _ in in_parts(self._compute, [piece], give_up, self._model.device):
            slot.tokens += tokens

    def warm_up(self) -> None:
        """Run one token first, for what libraries set up at the first use.

        Then measure what steps cost.
        """
        self._timed(Piece(0, 0, [0], logits=1))
        reading = self._timed(Piece(0, 0, [0] * WARM, logits=1, is_prompt=True))
        decode = self._timed(Piece(0, WARM, [0], logits=1))
        self.scheduler.costs = Costs.of(WARM, reading, decode)

    def _timed(self, piece: Piece) -> float:
        began = time.monotonic()
        self._model.step([piece], self._cache)
        return time.monotonic() - began


def _piece(stream: Stream, count: int, guess: list[int]) -> Piece:
    assert stream.slot
    end = stream.computed + count
    tokens, logits = stream.tokens[stream.computed : end] + guess, (end == len(stream.tokens)) + len(guess)
    return Piece(stream.slot.index, stream.computed, tokens, logits, is_prompt=stream.reads)


def _rows(pieces: Iterable[Piece]) -> tuple[int, int]:
    """How many rows of a step go on with answers, guesses included, and how many read prompts."""
    found = [(piece.is_prompt, len(piece.tokens)) for piece in pieces]
    read = sum(tokens for is_prompt, tokens in found if is_prompt)
    return sum(tokens for _, tokens in found) - read, read
