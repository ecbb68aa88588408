"""Following a job for a program, which may go away at any moment: waiting, in prefill, streaming or not.

A program that goes away ends its job at once, as `disconnected`. One way for every surface: SSE, JSON and socket.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from engine.errors import AccessEnded, NotReady
from engine.job import Job, Update
from engine.service import ChatService
from engine.types import Status
from ui.api.errors import ApiError, as_api_error

PING_S = 10.0  # silence after which a stream says that it is still there


class Gone(Exception):
    """The program that asked is no longer there."""


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def updates(
    service: ChatService, job: Job, gone: Awaitable[None], ping_s: float = PING_S
) -> AsyncGenerator[Update | None, None]:
    """The job's updates, with None after each `ping_s` of silence. The job ends as soon as `gone` returns.

    However this generator is left, a job that still lives ends with it.
    """
    leaving = asyncio.ensure_future(gone)
    leaving.add_done_callback(lambda _: service.end(job, Status.DISCONNECTED))
    follow = job.follow()
    upcoming = asyncio.ensure_future(_next(follow))
    try:
        while True:
            if not (await asyncio.wait({upcoming}, timeout=ping_s))[0]:
                yield None
                continue
            update = upcoming.result()
            yield update
            if update.status.final:
                return
            upcoming = asyncio.ensure_future(_next(follow))
    finally:
        leaving.cancel()  # ends the job if it still lives
        upcoming.cancel()
        await asyncio.wait({upcoming})
        await follow.aclose()


async def _next(follow: AsyncGenerator[Update, None]) -> Update:
    return await anext(follow)


async def whole_answer(service: ChatService, job: Job, receive: Receive) -> Update:
    """The last update, once the job has come to its end. Raises Gone, or what ended it instead."""
    last: Update | None = None
    async with aclosing(updates(service, job, disconnected(receive))) as seen:
        async for update in seen:
            last = update or last
    assert last is not None
    if last.status is Status.DISCONNECTED:
        raise Gone
    if trouble := trouble_of(last, job.id):
        raise trouble
    return last


def trouble_of(update: Update, request_id: str) -> ApiError | None:
    """What a program is told of an answer that did not come to its own end; None where it did."""
    match update.status:
        case Status.DONE | Status.STOPPED:
            return None
        case Status.FAILED if isinstance(update.error, NotReady):
            return as_api_error(update.error)
        case Status.FAILED:
            message = str(update.error or "The engine failed.")
            return ApiError(500, f"{message} (request {request_id})", type="server_error", code="engine_error")
        case Status.TIMED_OUT:
            message = str(update.error or "The answer was not ready in time.")
            return ApiError(504, message, type="server_error", code="timed_out")
        case Status.INTERRUPTED:
            message = "The server is going down and could not finish this answer."
            return ApiError(503, message, type="server_error", code="draining", retry_after_s=10)
        case Status.CANCELLED if isinstance(update.error, AccessEnded):
            return ApiError(401, str(update.error), type="authentication_error", code=update.error.code)
        case _:
            return ApiError(499, "The request was cancelled.", code="cancelled")  # clients repeat a 409 by themselves


class EventStream(Response):
    """Server-sent events of one job. `frames` is what to say to each update (None: a ping is due)."""

    media_type = "text/event-stream"

    def __init__(
        self, service: ChatService, job: Job, frames: Callable[[Update], list[str]], ping_s: float = PING_S
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self.service, self.job, self.frames, self.ping_s = service, job, frames, ping_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def write(text: str, more: bool = True) -> None:
            if text or not more:
                await send({"type": "http.response.body", "body": text.encode(), "more_body": more})

        async with aclosing(updates(self.service, self.job, disconnected(receive), self.ping_s)) as seen:
            begun = False
            async for update in seen:
                if not begun:  # only from the first update on does the job end with this stream
                    await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
                    begun = True
                await write(self._text(update))
        await write("", more=False)

    def _text(self, update: Update | None) -> str:
        if update is None:
            return ": ping\n\n"
        if update.status is Status.QUEUED:
            return f": waiting, {_place(update)}\n\n"
        return "".join(map(sse, self.frames(update)))


def _place(update: Update) -> str:
    wait = f", about {update.expected_wait_s:.0f} s" if update.expected_wait_s is not None else ""
    return f"position {update.position + 1}{wait}" if update.position is not None else "soon"


def sse(data: str) -> str:
    return f"data: {data}\n\n"
