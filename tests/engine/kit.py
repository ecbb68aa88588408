"""A service on a scripted backend, a recorder that keeps its rows in memory, and unruly backends."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from engine.backends.scripted import ScriptedBackend
from engine.job import Job, Update
from engine.service import ChatService
from engine.settings import Settings
from engine.types import ChatRequest, Event, Exchange, Message, Source, Status


class MemoryRecorder:
    """Keeps every row it is given, by exchange, unless told to fail in one of the ways a real one can."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Exchange]] = {}
        self.trouble: str | None = None
        self.refusing = False  # `record` itself raises
        self.failing = False  # the future that it returns fails
        self.silent = False  # the future that it returns does not end
        self.unwritten: list[asyncio.Future[None]] = []

    def record(self, exchange: Exchange) -> "asyncio.Future[None]":
        if self.refusing:
            raise OSError("the recorder is closed")
        self.rows.setdefault(exchange.id, []).append(exchange)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self.failing:
            written.set_exception(OSError("disk full"))
        elif self.silent:
            self.unwritten.append(written)
        else:
            written.set_result(None)
        return written

    def health(self) -> str | None:
        return self.trouble

    def statuses(self, job: Job) -> list[Status]:
        return [row.status for row in self.rows[job.id]]

    def last(self, job: Job) -> Exchange:
        return self.rows[job.id][-1]


class UnrulyBackend(ScriptedBackend):
    """Does what no backend should, when the prompt asks for it."""

    def __init__(self) -> None:
        super().__init__(pause_s=0)
        self.counting = threading.Event()  # set while a "slow to read" prompt's tokens are being counted
        self.counted = threading.Event()  # set it to let that counting end

    def count_tokens(self, messages: Sequence[Message]) -> int:
        if messages[-1].content == "unreadable":
            raise ValueError("this text breaks the tokenizer")
        if messages[-1].content == "slow to read":
            self.counting.set()
            assert self.counted.wait(60)
        return super().count_tokens(messages)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        async with aclosing(super().stream(request)) as events:
            match request.prompt:
                case "crash":
                    raise RuntimeError("a bug in the backend")
                case "time out inside":
                    raise TimeoutError("a socket of the backend's own")
                case "stuck":
                    await asyncio.Event().wait()
                case "no end":
                    yield await anext(events)
                    return
                case "sloppy":
                    try:
                        await asyncio.Event().wait()
                    finally:
                        raise RuntimeError("a bug in the cleaning up")
            async for event in events:
                yield event


async def service_on(backend: ScriptedBackend | None = None, **settings: object) -> ChatService:
    """A service that is ready. `service.backend` and `service.recorder` are the two above."""
    chosen = Settings.model_validate({"backend": "scripted", **settings})
    service = ChatService(chosen, backend or ScriptedBackend(pause_s=0), MemoryRecorder())
    await service.start()
    return service


def parts(service: ChatService) -> tuple[UnrulyBackend, MemoryRecorder]:
    assert isinstance(service.backend, UnrulyBackend)
    assert isinstance(service.recorder, MemoryRecorder)
    return service.backend, service.recorder


def question(prompt: str = "hello", person: str | None = "ada", source: Source = "api") -> ChatRequest:
    return ChatRequest(messages=(Message("user", prompt),), person=person, source=source)


async def until(job: Job, seen: Callable[[Update], bool]) -> Update:
    """Follow the job until an update is as wanted."""
    async with aclosing(job.follow()) as updates:
        async for update in updates:
            if seen(update):
                return update
    raise AssertionError(f"the job ended as {update.status} before that was seen")


def running(update: Update) -> bool:
    return update.status is Status.RUNNING


def speaking(update: Update) -> bool:
    return update.seq > 0


async def ended(job: Job) -> Update:
    await job.closed()
    return job.update()


def assert_empty(service: ChatService) -> None:
    """Nothing is left of any request: no place taken, no stream open, no task."""
    assert service.gate.depth == 0
    assert not service.jobs
    assert isinstance(service.backend, ScriptedBackend)
    assert not service.backend.active
    names = [task.get_name() for task in asyncio.all_tasks()]
    assert not [name for name in names if name.startswith(("job ", "close "))]
