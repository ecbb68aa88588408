"""The generation thread: schedule -> step -> sample -> hand the tokens to the event loop, for as long as it lives.

Knows the order of things and what to do when one of them fails. The model, the cache and the policy are given to it.
"""

import asyncio
import atexit
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from queue import Empty, SimpleQueue
from typing import Protocol

import torch
from loguru import logger
from torch import Tensor

from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.lookup import worth_guessing
from engine.backends.qwen2.model import Piece
from engine.backends.qwen2.sampler import Chooser, Constraint, sample
from engine.backends.qwen2.scheduler import Scheduler
from engine.backends.qwen2.stream import Stream
from engine.backends.qwen2.tokens import TextStream, Tokens
from engine.errors import BackendFailed, EngineError, NotReady
from engine.types import Done, Event, Sampling

STUCK_AFTER_S = 120.0  # a step that takes longer than this means that the device hangs
FAILED = "The engine failed while it worked on this request; ask again."
OUT_OF_MEMORY = "The engine ran out of memory while it worked on this request; ask again, with a shorter prompt."


class Model(Protocol):
    device: torch.device

    def step(self, pieces: Sequence[Piece], cache: KVCache) -> Tensor: ...


class Worker:
    def __init__(
        self, model: Model, cache: KVCache, tokens: Tokens, ends: frozenset[int], threads: int, lookahead: int
    ) -> None:
        self.scheduler = Scheduler()
        self._model, self._cache, self._tokens, self._ends = model, cache, tokens, ends
        self._threads = threads  # of the CPU, for the arithmetic
        self._lookahead = lookahead  # tokens that may be guessed for one answer in a step; 0 = none
        self._streams: list[Stream] = []  # those that have not ended, in order of arrival; the thread's own
        self._inbox: SimpleQueue[Stream | None] = SimpleQueue()  # None is only a knock
        self._outbox: defaultdict[asyncio.AbstractEventLoop, list[tuple[Stream, Event | EngineError | None]]]
        self._outbox = defaultdict(list)
        self._closing = False
        self._trouble: str | None = None
        self._step_began: float | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="generation", daemon=True)

    # --- for the event loop ---

    def start(self) -> None:
        """Start the thread and wait until it has warmed up. Raises BackendFailed if that fails."""
        self._thread.start()
        atexit.register(self.stop)  # a thread in the midst of arithmetic would abort the interpreter's end
        self._ready.wait()
        if self._trouble:
            raise BackendFailed(self._trouble)

    def open(
        self, prompt: Sequence[int], sampling: Sampling, max_tokens: int, constraint: Constraint | None = None
    ) -> Stream:
        """Take a request in, whose prompt and answer fit the cache; called on the event loop that gets the events."""
        if trouble := self.health():
            raise NotReady(trouble, code="engine_failed")
        stream = Stream(
            tokens=list(prompt),
            arrived_at=time.monotonic(),
            prompt_tokens=len(prompt),
            max_tokens=max_tokens,
            ends=frozenset() if sampling.ignore_eos else self._ends,
            chooser=Chooser(sampling, prompt, max_tokens, self._model.device, constraint),
            text=TextStream(self._tokens, sampling.stop),
            loop=asyncio.get_running_loop(),
        )
        self._inbox.put(stream)
        if self._trouble:  # the thread has ended meanwhile and does not look into its inbox any more
            raise NotReady(self._trouble, code="engine_failed")
        return stream

    def cancel(self, stream: Stream) -> None:
        """Let go of the stream before the next step, wherever it stands. Does nothing if it has ended."""
        stream.cancelled = True
        self._inbox.put(None)

    def health(self) -> str | None:
        """None, or why no request can be answered."""
        began = self._step_began
        if self._trouble is None and began is not None and time.monotonic() - began > STUCK_AFTER_S:
            return f"The engine has been in one step for {time.monotonic() - began:.0f} s; restart the server."
        return self._trouble

    def stop(self, patience_s: float = 5.0) -> None:
        """End the thread after its present step, and with it every open stream."""
        atexit.unregister(self.stop)
        self._closing = True
        self._inbox.put(None)
        if self._thread.is_alive():
            self._thread.join(patience_s)

    # --- the thread ---

    def _run(self) -> None:
        trouble = "The engine is stopped."
        try:
            torch.set_num_threads(self._threads)
            self._warm_up()
            self._ready.set()
            while self._collect():
                self._turn()
                self._deliver()
        except BaseException as error:
            logger.opt(exception=error).critical("the generation thread ends")
            trouble = f"The engine failed and cannot go on ({type(error).__name__}); restart the server."
        finally:
            self._trouble = trouble
            self._ready.set()
            self._fail_all(NotReady(trouble, code="draining" if self._closing else "engine_failed"))

    def _collect(self) -> bool:
        """Take in what is new and let go of what is cancelled, waiting if there is nothing to do. False to end."""
        while not self._closing:
            try:
                if stream := self._inbox.get(block=not self._streams):
                    stream.cached = self._cache.cached(stream.tokens)
                    self._streams.append(stream)
            except Empty:
                break
        for stream in [stream for stream in self._streams if stream.cancelled]:
            self._close(stream, None)
        return not self._closing

    def _turn(self) -> None:
        """One step of everything that runs."""
        plan = self.scheduler.schedule(self._streams, self._take_slot)
        guesses = self._guesses(plan)
        pieces = {stream: _piece(stream, count, guesses.get(stream, [])) for stream, count in plan.items()}
        if not pieces:
            return
        self._step_began = began = time.monotonic()
        try:
            logits = self._model.step(list(pieces.values()), self._cache)
            for stream, count in plan.items():
                stream.compute(count)
            self._choose({stream: piece for stream, piece in pieces.items() if piece.logits}, logits)
        except Exception as error:
            self._recover(error)
            return
        self._step_began = None
        self.scheduler.costs.learn(*_rows(pieces.values()), time.monotonic() - began)

    def _guesses(self, plan: dict[Stream, int]) -> dict[Stream, list[int]]:
        """What may come next in answers, as far as it is worth trying; nothing while a prompt is read."""
        if not self._lookahead or any(stream.pending > 1 for stream in plan):
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
            asked = logits if len(rows) == len(logits) else logits[[row + right for row in rows.values()]]
            chosen = sample(asked, [stream.chooser for stream in rows])
            for stream, token in zip(list(rows), chosen, strict=True):
                self._advance(stream, token)
                guess = pieces[stream].tokens[1:] if pieces[stream].logits > 1 else []
                if stream.slot and right < len(guess) and guess[right] == token:
                    stream.compute(1)
                else:
                    stream.lookup.learn(len(guess), right)
                    del rows[stream]
            right += 1

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
            logger.opt(exception=error).error("one request failed; the others go on")
            self._close(stream, BackendFailed(FAILED))
            return
        for event in events[:-1]:
            self._tell(stream, event)
        if events and isinstance(events[-1], Done):
            self._close(stream, events[-1])
        elif events:
            self._tell(stream, events[-1])

    def _close(self, stream: Stream, last: Event | EngineError | None) -> None:
        self._streams.remove(stream)
        if stream.slot:
            self._cache.release(stream.slot)
            stream.slot = None
        self._tell(stream, last)

    def _tell(self, stream: Stream, event: Event | EngineError | None) -> None:
        self._outbox[stream.loop].append((stream, event))

    def _deliver(self) -> None:
        """Hand over what there is to tell: one call a step for each event loop."""
        for loop, items in self._outbox.items():
            try:
                loop.call_soon_threadsafe(_put, items)
            except RuntimeError:  # the loop is closed: nobody listens any more
                for stream, _ in items:
                    self.cancel(stream)
        self._outbox.clear()

    # --- when things go wrong ---

    def _recover(self, error: Exception) -> None:
        """Fail what runs, forget the cache, and see whether the model still works. Raises if it does not."""
        logger.opt(exception=error).error("a step failed")
        exhausted = isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)
        self._fail_all(BackendFailed(OUT_OF_MEMORY if exhausted else FAILED))
        self._cache.clear()
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()
        self._warm_up()

    def _fail_all(self, error: EngineError) -> None:
        while not self._inbox.empty():
            if stream := self._inbox.get():
                self._streams.append(stream)
        for stream in list(self._streams):
            self._close(stream, error)
        self._deliver()

    def _warm_up(self) -> None:
        """Run a prompt and a decode: bitsandbytes packs weights anew at the first use, which must not be in a hurry."""
        self._step_began = time.monotonic()
        self._model.step([Piece(0, 0, [0, 0], logits=1)], self._cache)
        self._model.step([Piece(0, 2, [0], logits=1)], self._cache)
        self._step_began = None


def _piece(stream: Stream, count: int, guess: list[int]) -> Piece:
    assert stream.slot
    end = stream.computed + count
    tokens = stream.tokens[stream.computed : end] + guess
    return Piece(stream.slot.index, stream.computed, tokens, logits=(end == len(stream.tokens)) + len(guess))


def _rows(pieces: Iterable[Piece]) -> tuple[int, int]:
    """How many rows of a step go on with answers, guesses included, and how many read prompts."""
    found = [(piece.logits, len(piece.tokens)) for piece in pieces]
    decodes = sum(tokens for logits, tokens in found if logits == tokens)
    return decodes, sum(tokens for _, tokens in found) - decodes


def _put(items: list[tuple[Stream, Event | EngineError | None]]) -> None:
    for stream, event in items:
        stream.events.put_nowait(event)
