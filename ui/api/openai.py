"""OpenAI's chat completions: JSON, server-sent events ending in [DONE], and the same chunks over a WebSocket."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing, suppress
from typing import Any

from nicegui import app
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from engine.errors import EngineError
from engine.types import ChatRequest, Status, new_id
from ui.api.answers import Answer, EventStream, updates, whole_answers
from ui.api.bodies import ChatBody, Drawing
from ui.api.calls import Calls
from ui.api.described import ASKING, ChatCompletion, Model, Models, asking, replies
from ui.api.errors import ApiError, error_body
from ui.api.requests import (
    MAX_BODY_BYTES,
    check_model,
    messages_of,
    parse,
    read,
    requests_of,
    too_large,
)
from ui.api.shapes import ChatShape, Chunks, Shape, as_json, whole
from ui.auth import Caller
from ui.desk import Desk
from ui.guard import find_caller
from ui.prompt import with_system_prompt


def register(desk: Desk, calls: Calls) -> None:
    told = replies(ChatCompletion, *ASKING, streams=True)

    @app.post("/v1/chat/completions", tags=["chat"], responses=told, openapi_extra=asking(ChatBody))
    async def chat_completions(request: Request) -> Response:
        """Ask, as with OpenAI's API. `stream` true answers in server-sent events."""
        calls.rate.take(request.state.caller)
        body = await read(request, ChatBody)
        asked = chat_requests(desk, body, request.state.caller, request.state.request_id)
        return await answered(desk, request, body, ChatShape(), await calls.answers(request, body, asked))

    @app.get("/v1/models", tags=["chat"], responses=replies(Models))
    async def models() -> Response:
        """The running model, and why it was chosen."""
        return JSONResponse({"object": "list", "data": [model_card(desk)]})

    @app.get("/v1/models/{name:path}", tags=["chat"], responses=replies(Model, 404))
    async def model(name: str) -> Response:
        """The running model by its name."""
        check_model(name, desk.service.backend.model)
        return JSONResponse(model_card(desk))

    @app.websocket("/v1/chat/ws")
    async def socket(websocket: WebSocket) -> None:
        await ChatSocket(desk, calls, websocket).serve()


async def answered(desk: Desk, request: Request, body: Drawing, shape: Shape, answers: Sequence[Answer]) -> Response:
    """A stream, or the whole once it is there."""
    choices = body.n or 1
    if body.stream:
        chunks = Chunks(shape, answers, usage=_wants_usage(body), choices=choices)
        return EventStream(desk.service, answers, chunks)
    last = await whole_answers(desk.service, answers, request.receive)
    return JSONResponse(whole(shape, answers, last, choices))


def chat_requests(desk: Desk, body: ChatBody, caller: Caller, request_id: str) -> list[ChatRequest]:
    """What the service is asked. Raises InvalidRequest, or ApiError for another model than the running one."""
    check_running_model(desk, body.model)
    messages = with_system_prompt(messages_of(body.messages), desk.settings.system_prompt)
    return requests_of(body, [messages], caller, request_id)


def check_running_model(desk: Desk, name: str | None) -> None:
    """Raise ApiError for another model. While none runs, `submit` says why, and which one will run is not known yet."""
    if desk.service.state()[0] == "ready":
        check_model(name, desk.service.backend.model)


def model_card(desk: Desk) -> dict[str, Any]:
    backend = desk.service.backend
    about = {"quantization": backend.quantization, "context_tokens": backend.context_tokens, "reason": backend.reason}
    return {"id": backend.model, "object": "model", "created": 0, "owned_by": "qdesk", **about}


class ChatSocket:
    """WS /v1/chat/ws: a request frame as for POST, answered by the chunks as frames up to [DONE]; then the next.

    {"type": "cancel"} stops the answer that is under way, which keeps what it has.
    """

    def __init__(self, desk: Desk, calls: Calls, socket: WebSocket) -> None:
        self.desk, self.calls, self.socket = desk, calls, socket
        self.answers: Sequence[Answer] = ()  # those under way
        self.closed = asyncio.Event()

    async def serve(self) -> None:
        await self.socket.accept()
        frames: asyncio.Queue[str] = asyncio.Queue(maxsize=1)
        answering = asyncio.create_task(self._answer_all(frames))
        try:
            while (message := await self.socket.receive())["type"] != "websocket.disconnect":
                await self._take(message.get("text") or "", frames)
        except (WebSocketDisconnect, RuntimeError):
            pass  # it went away while it was being told something
        finally:
            self.closed.set()
            answering.cancel()
            with suppress(asyncio.CancelledError):
                await answering

    async def _take(self, text: str, frames: asyncio.Queue[str]) -> None:
        if _is_cancel(text):
            for answer in self.answers:
                if job := self.desk.service.jobs.get(answer.id):
                    self.desk.service.end(job, Status.STOPPED)
        elif len(text) > MAX_BODY_BYTES:
            await self._say_error(too_large())
        elif self.answers or frames.full():
            await self._say_error(ApiError(409, "One request at a time on a socket.", code="request_in_progress"))
        else:
            frames.put_nowait(text)

    async def _answer_all(self, frames: asyncio.Queue[str]) -> None:
        while True:
            try:
                await self._answer(await frames.get())
            except (EngineError, ApiError) as error:
                await self._say_error(error)
            except (WebSocketDisconnect, RuntimeError):
                return  # it went away while it was being told something

    async def _answer(self, text: str) -> None:
        body = parse(text, ChatBody)
        caller = await find_caller(self.desk.auth, self.socket)  # asked each time: a key may be revoked meanwhile
        if caller is None:
            raise ApiError(
                401, "This key or session is no longer valid.", type="authentication_error", code="invalid_api_key"
            )
        self.calls.rate.take(caller)
        self.answers = answers = await self.calls.start(caller, chat_requests(self.desk, body, caller, new_id()))
        try:
            chunks = Chunks(ChatShape(), answers, usage=_wants_usage(body), choices=body.n or 1)
            async with aclosing(updates(self.desk.service, answers, _set(self.closed))) as seen:
                async for item in seen:
                    frames = chunks(*item) if item else []
                    if chunks.done:
                        self.answers = ()  # whoever reads the last frame may ask the next question at once
                    for frame in frames:
                        await self.socket.send_text(frame)
                    if chunks.done:
                        return
        finally:
            self.answers = ()

    async def _say_error(self, error: EngineError | ApiError) -> None:
        await self.socket.send_text(as_json(error_body(error)))


async def _set(event: asyncio.Event) -> None:
    await event.wait()


def _wants_usage(body: Drawing) -> bool:
    return bool(body.stream_options and body.stream_options.include_usage)


def _is_cancel(text: str) -> bool:
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(frame, dict) and frame.get("type") == "cancel"
