"""The generation thread: take in what is asked -> step -> hand the tokens to the event loop, for as long as it lives.

Knows how requests come and go, and what to do when a step fails or nobody asks. What a step is, stepping.py knows.
"""

import asyncio
import atexit
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from queue import Empty, SimpleQueue

import torch
from loguru import logger

from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.sampler import Chooser, Constraint
from engine.backends.qwen2.stepping import FAILED, Model, Stepper
from engine.backends.qwen2.stream import Stream
from engine.backends.qwen2.tokens import TextStream, Tokens
from engine.errors import BackendFailed, EngineError, NotReady
from engine.types import Event, Sampling

STUCK_AFTER_S = 120.0  # a step that takes longer than this means that the device hangs
QUIET_S = 0.2  # after that long without a request the thread reads ahead; a program asks again sooner


class Worker:
    def __init__(
        self, model: Model, cache: KVCache, tokens: Tokens, ends: frozenset[int], threads: int, lookahead: int
    ) -> None:
        """`threads` are the CPU's, for the arithmetic; `lookahead` tokens may be guessed for one answer in a step."""
        self._stepper = Stepper(model, cache, lookahead, self._tell, self._close)
        self.scheduler, self.guesses = self._stepper.scheduler, self._stepper.guesses
        self._model, self._cache, self._tokens, self._ends = model, cache, tokens, ends
        self._threads = threads
        self._streams: list[Stream] = []  # those that have not ended, in order of arrival; the thread's own
        self._inbox: SimpleQueue[Stream | None] = SimpleQueue()  # None is only a knock
        self._outbox: defaultdict[asyncio.AbstractEventLoop, list[tuple[Stream, Event | EngineError | None]]]
        self._outbox = defaultdict(list)
        self.broken: Future[str] = Future()  # the reason, when the thread has ended though nobody asked for it
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
            next_turn=self._tokens.between if prompt[0] == self._tokens.start else (),
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
            self._stepper.warm_up()
            self._ready.set()
            while self._collect():
                self._guarded(lambda: self._stepper.step(self._streams))
                self._deliver()
        except BaseException as error:
            logger.opt(exception=error).critical("the generation thread ends")
            trouble = f"The engine failed and cannot go on ({type(error).__name__}); restart the server."
        finally:
            self._trouble = trouble
            self._ready.set()
            self._fail_all(NotReady(trouble, code="draining" if self._closing else "engine_failed"))
            if not self._closing:
                self.broken.set_result(trouble)
            del self._stepper  # they know each other, and the weights would stay until somebody looks for garbage

    def _collect(self) -> bool:
        """Take in what is new and let go of what is cancelled, waiting if there is nothing to do. False to end."""
        while not self._closing:
            ahead = None if self._streams else self._cache.to_read_ahead()
            try:
                if stream := self._inbox.get(not self._streams, QUIET_S if ahead else None):
                    stream.cached = self._cache.cached(stream.tokens)
                    self._streams.append(stream)
            except Empty:
                if ahead is None:
                    break
                self._guarded(partial(self._stepper.read_ahead, ahead))
        for stream in [stream for stream in self._streams if stream.cancelled]:
            self._close(stream, None)
        return not self._closing

    def _guarded(self, work: Callable[[], None]) -> None:
        """Do what the device may fail at, or hang in."""
        self._step_began = time.monotonic()
        try:
            work()
        except Exception as error:
            self._recover(error)
        self._step_began = None

    def _close(self, stream: Stream, last: Event | EngineError | None) -> None:
        self._streams.remove(stream)
        if stream.slot:
            self._cache.release(stream.slot, () if isinstance(last, EngineError) else stream.ahead)
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
        self._fail_all(BackendFailed(FAILED))
        self._cache.clear()
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()
        self._stepper.warm_up()

    def _fail_all(self, error: EngineError) -> None:
        while not self._inbox.empty():
            if stream := self._inbox.get():
                self._streams.append(stream)
        for stream in list(self._streams):
            self._close(stream, error)
        self._deliver()


def _put(items: list[tuple[Stream, Event | EngineError | None]]) -> None:
    for stream, event in items:
        stream.events.put_nowait(event)
