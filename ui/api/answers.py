"""Following the answers of one call for a program, which may go away at any moment, waiting or in mid-answer.

A program that goes away ends its jobs at once, as `disconnected`, unless it asked under an idempotency key. One way for
every surface: SSE, JSON and socket.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine.errors import AccessEnded, InvalidRequest, NotReady, QueueFull
from engine.job import Job, Update
from engine.service import ChatService
from engine.types import Logprob, Status
from ui.api.errors import ApiError, as_api_error

PING_S = 10.0  # silence after which a stream says that it is still there


class Gone(Exception):
    """The program that asked is no longer there."""


class Answer(Protocol):
    """What the surfaces need of a job, or of one that ended long ago (ui/api/replay.py)."""

    id: str
    model: str
    queued_at: datetime
    logprobs: list[tuple[Logprob, ...]]

    @property
    def text(self) -> str: ...

    def follow(self) -> AsyncGenerator[Update, None]: ...


class Frames(Protocol):
    """What a stream says to each update of each answer, until it says no more."""

    done: bool

    def __call__(self, number: int, update: Update) -> list[str]: ...


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def updates(
    service: ChatService, answers: Sequence[Answer], gone: Awaitable[None], ping_s: float = PING_S
) -> AsyncGenerator[tuple[int, Update] | None, None]:
    """Updates with the number of their answer, and None after each `ping_s` of silence.

    The jobs end as soon as `gone` returns, and however this generator is left; those that outlive their program go on,
    and `gone` ends this generator alone.
    """
    mortal = [answer for answer in answers if isinstance(answer, Job) and not answer.request.outlives]
    leaving = asyncio.ensure_future(gone)

    def end_all(_: object) -> None:
        for job in mortal:
            service.end(job, Status.DISCONNECTED)

    leaving.add_done_callback(end_all)
    follows = [answer.follow() for answer in answers]
    upcoming = {asyncio.ensure_future(_next(follow)): number for number, follow in enumerate(follows)}
    try:
        while upcoming:
            watched: set[asyncio.Future[Any]] = {*upcoming} if mortal else {*upcoming, leaving}
            done, _ = await asyncio.wait(watched, timeout=ping_s, return_when=asyncio.FIRST_COMPLETED)
            if leaving in done:
                return
            if not done:
                yield None
            for task in [task for task in upcoming if task in done]:
                number, update = upcoming.pop(task), task.result()
                if not update.status.final:
                    upcoming[asyncio.ensure_future(_next(follows[number]))] = number
                yield number, update
    finally:
        leaving.cancel()  # ends the jobs that still live
        for task in upcoming:
            task.cancel()
        if upcoming:
            await asyncio.wait(upcoming)
        for follow in follows:
            await follow.aclose()


async def _next(follow: AsyncGenerator[Update, None]) -> Update:
    return await anext(follow)


async def whole_answers(service: ChatService, answers: Sequence[Answer], receive: Receive) -> list[Update]:
    """The last update of each, once all have come to their end. Raises Gone, or what ended one of them instead."""
    last: dict[int, Update] = {}
    async with aclosing(updates(service, answers, disconnected(receive))) as seen:
        async for item in seen:
            if item and item[1].status.final:
                number, update = item
                last[number] = update
                if update.status is Status.DISCONNECTED and isinstance(answers[number], Job):
                    raise Gone
                if trouble := trouble_of(update, answers[number].id):
                    raise trouble
    if len(last) < len(answers):
        raise Gone
    return [last[number] for number in range(len(answers))]


def trouble_of(update: Update, request_id: str) -> ApiError | None:
    """What a program is told of an answer that did not come to its own end; None where it did."""
    match update.status:
        case Status.DONE | Status.STOPPED:
            return None
        case Status.FAILED if isinstance(update.error, NotReady | InvalidRequest | QueueFull):
            return as_api_error(update.error)
        case Status.FAILED:
            message = str(update.error or "The engine failed.")
            return ApiError(500, f"{message} (request {request_id})", type="server_error", code="engine_error")
        case Status.TIMED_OUT:
            message = str(update.error or "The answer was not ready in time.")
            return ApiError(504, message, type="server_error", code="timed_out")
        case Status.INTERRUPTED:
            message = str(update.error or "The server is going down and could not finish this answer.")
            return ApiError(503, message, type="server_error", code="draining", retry_after_s=10)
        case Status.CANCELLED if isinstance(update.error, AccessEnded):
            return ApiError(401, str(update.error), type="authentication_error", code=update.error.code)
        case _:
            return ApiError(499, "The request was cancelled.", code="cancelled")  # clients repeat a 409 by themselves


class EventStream(Response):
    """Server-sent events of the answers of one call, with comments while they wait and in silence."""

    media_type = "text/event-stream"

    def __init__(self, service: ChatService, answers: Sequence[Answer], frames: Frames, ping_s: float = PING_S) -> None:
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self.service, self.answers, self.frames, self.ping_s = service, answers, frames, ping_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def write(text: str, more: bool = True) -> None:
            if text or not more:
                await send({"type": "http.response.body", "body": text.encode(), "more_body": more})

        async with aclosing(updates(self.service, self.answers, disconnected(receive), self.ping_s)) as seen:
            begun = False
            async for item in seen:
                if not begun:  # only from the first update on do the jobs end with this stream
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                    begun = True
                await write(self._text(item))
                if self.frames.done:
                    break
        await write("", more=False)

    def _text(self, item: tuple[int, Update] | None) -> str:
        if item is None:
            return ": ping\n\n"
        number, update = item
        if update.status is Status.QUEUED:
            return f": waiting, {_place(update)}\n\n"
        return "".join(map(sse, self.frames(number, update)))


def _place(update: Update) -> str:
    wait = f", about {update.expected_wait_s:.0f} s" if update.expected_wait_s is not None else ""
    return f"position {update.position + 1}{wait}" if update.position is not None else "soon"


def sse(data: str) -> str:
    return f"data: {data}\n\n"
