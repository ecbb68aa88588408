"""The in-process engine: a 4-bit Qwen2 or Qwen2.5 that answers all requests in one batch per step.

Knows the settings and puts the parts together; torch and the rest are imported when it is started.
"""

import asyncio
import gc
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from loguru import logger

from engine.backends import CacheUse, Guesses, PromptPiece, StreamLook
from engine.backends.qwen2 import lean_torch
from engine.errors import ContextOverflow, EngineError, NotReady
from engine.settings import Settings
from engine.types import ChatRequest, Done, Event, Message, Report

if TYPE_CHECKING:
    from engine.backends.qwen2.loading import Engine
    from engine.backends.qwen2.source import ModelSource
    from engine.backends.qwen2.stream import Stream

T = TypeVar("T")


class Qwen2Backend:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.model = self.reason = ""
        self.quantization: str = settings.quantize
        self.context_tokens = self.capacity = self.weights_bytes = self.cache_bytes = 0
        self._engine: Engine | None = None
        self._streams: dict[str, Stream] = {}  # those that are open, by request id
        self._stopped = False

    async def start(self, report: Report) -> None:
        began = time.monotonic()
        engine = await _in_a_thread_that_ends(partial(self._load, report))
        if self._stopped:
            await asyncio.to_thread(engine.worker.stop)
            return
        lean_torch.compute_alone()  # the event loop's own small arithmetic: the threads are generation's
        self.model, self.reason = engine.source.name, engine.reason
        self.context_tokens, self.capacity = engine.cache.capacity, len(engine.cache.slots)
        self.weights_bytes, self.cache_bytes = engine.weights_bytes, engine.cache.bytes
        self._engine = engine
        logger.info("{} is loaded after {:.1f} s", self.model, time.monotonic() - began)

    def _load(self, report: Report) -> "Engine":
        from engine.backends.qwen2 import ready, weights

        settings = self.settings

        def check(source: "ModelSource") -> Path | None:
            """The folder of ready weights, if it is there and whole."""
            folder = ready.folder_of(source, settings.quantize, settings.models_dir)
            return folder if ready.is_whole(folder, report) else None

        with ThreadPoolExecutor(2) as aside:  # checking leaves the interpreter to the import, which takes as long
            importing = aside.submit(_import_loading)
            likely = weights.without_hub(settings)
            checking = {likely.identity: aside.submit(check, likely)} if likely else {}
            source = weights.resolve(settings, report)
            whole = checking[source.identity].result() if source.identity in checking else check(source)
            load = importing.result()
        return load(source, whole, settings, report)

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return self._loaded().tokens.prompt_length(messages, self.context_tokens)

    def tokenize(self, messages: Sequence[Message]) -> list[int]:
        return self._loaded().tokens.prompt(messages)

    def detokenize(self, tokens: Sequence[int]) -> str:
        return self._loaded().tokens.text_of(tokens)

    def pieces(self, messages: Sequence[Message]) -> list[PromptPiece]:
        tokens = self._loaded().tokens
        return tokens.pieces(tokens.prompt(messages))

    def check(self, request: ChatRequest) -> None:
        if (schema := request.sampling.json_schema) is not None:
            self._loaded().schemas.constraint(schema)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        engine = self._loaded()
        prompt = await asyncio.to_thread(engine.tokens.prompt, request.messages)
        room = self.context_tokens - len(prompt)
        if room < 1:
            raise ContextOverflow(len(prompt), self.context_tokens)
        schema = request.sampling.json_schema
        constraint = None if schema is None else await asyncio.to_thread(engine.schemas.constraint, schema)
        max_tokens = min(request.sampling.max_tokens or room, room)
        stream = engine.worker.open(prompt, request.sampling, max_tokens, constraint)
        self._streams[request.id] = stream
        try:
            while True:
                event = await stream.events.get()
                if isinstance(event, EngineError):
                    raise event
                if event is None:
                    return
                yield event
                if isinstance(event, Done):
                    return
        finally:
            self._streams.pop(request.id, None)
            engine.worker.cancel(stream)

    def look(self, request_id: str) -> StreamLook | None:
        """The generation thread moves on meanwhile: single values are read, which are never torn."""
        if (stream := self._streams.get(request_id)) is None:
            return None
        slot, read = stream.slot, min(stream.computed, stream.prompt_tokens)
        return StreamLook(stream.prompt_tokens, read, stream.cached, None if slot is None else slot.index)

    def cache_use(self) -> CacheUse | None:
        if (engine := self._engine) is None:
            return None
        slots = engine.cache.slots
        used = [len(slot.tokens) for slot in slots if slot.in_use]
        kept = sum(len(slot.tokens) for slot in slots if not slot.in_use)
        return CacheUse(sum(used), kept, len(slots) * engine.cache.capacity, len(used), len(slots))

    def guesses(self) -> Guesses | None:
        return self._engine.worker.guesses if self._engine else None

    async def broken(self) -> str:
        """As MayBreak says; to be asked once it is loaded."""
        return await asyncio.shield(asyncio.wrap_future(self._loaded().worker.broken))

    def health(self) -> str | None:
        if self._stopped:
            return "The engine is stopped."
        return self._engine.worker.health() if self._engine else "The model is loading."

    async def stop(self) -> None:
        self._stopped = True
        if self._engine:
            engine, self._engine = self._engine, None
            await asyncio.to_thread(engine.worker.stop)

    def _loaded(self) -> "Engine":
        if not self._engine:
            stopped = self._stopped
            raise NotReady(self.health() or "", code="draining" if stopped else "model_loading")
        return self._engine


async def _in_a_thread_that_ends(work: Callable[[], T]) -> T:
    """As asyncio.to_thread does, whose thread stays, and with it the threads of its arithmetic."""
    own = ThreadPoolExecutor(1, "loading")
    try:
        return await asyncio.get_running_loop().run_in_executor(own, work)
    finally:
        own.shutdown(wait=False)


def _import_loading() -> "Callable[[ModelSource, Path | None, Settings, Report], Engine]":
    first = "engine.backends.qwen2.loading" not in sys.modules
    if first:
        gc.disable()  # what is imported stays, as in main.py
    try:
        lean_torch.import_torch()
        from engine.backends.qwen2.loading import load
    finally:
        if first:  # later there are pages, and what is frozen of them would never go
            gc.freeze()
            gc.enable()
    return load
