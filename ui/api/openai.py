"""OpenAI's chat completions: JSON, server-sent events ending in [DONE], and the same chunks over a WebSocket."""

import asyncio
import json
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from nicegui import app
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from engine.errors import EngineError
from engine.job import Job, Update
from engine.types import ChatRequest, Status, new_id
from ui.api.answers import EventStream, trouble_of, updates, whole_answer
from ui.api.asking import ask
from ui.api.errors import ApiError, error_body
from ui.api.requests import ChatBody, check_model, check_supported, messages_of, parse, read, sampling_of
from ui.auth import Caller
from ui.desk import Desk
from ui.guard import find_caller
from ui.prompt import with_system_prompt

DONE = "[DONE]"


def register(desk: Desk) -> None:
    @app.post("/v1/chat/completions", tags=["chat"], openapi_extra=body_of(ChatBody))
    async def chat_completions(request: Request) -> Response:
        """Ask, as with OpenAI's API. `stream` true answers in server-sent events."""
        body = await read(request, ChatBody)
        caller: Caller = request.state.caller
        job = await ask(desk, caller, chat_request(desk, body, caller, request.state.request_id))
        if body.stream:
            return EventStream(desk.service, job, Chunks(job, usage=_wants_usage(body)))
        return JSONResponse(completion(job, await whole_answer(desk.service, job, request.receive)))

    @app.get("/v1/models", tags=["chat"])
    async def models() -> Response:
        """The running model, and why it was chosen."""
        return JSONResponse({"object": "list", "data": [model_card(desk)]})

    @app.get("/v1/models/{name:path}", tags=["chat"])
    async def model(name: str) -> Response:
        """The running model by its name."""
        check_model(name, desk.service.backend.model)
        return JSONResponse(model_card(desk))

    @app.websocket("/v1/chat/ws")
    async def socket(websocket: WebSocket) -> None:
        await ChatSocket(desk, websocket).serve()


def chat_request(desk: Desk, body: ChatBody, caller: Caller, request_id: str) -> ChatRequest:
    """What the service is asked. Raises InvalidRequest, or ApiError for another model than the running one."""
    if desk.service.state()[0] == "ready":  # else `submit` says why not, and which model will run is not known yet
        check_model(body.model, desk.service.backend.model)
    check_supported(body)
    messages = with_system_prompt(messages_of(body), desk.settings.system_prompt)
    sampling = sampling_of(body)
    return ChatRequest(messages=messages, sampling=sampling, person=caller.person, source="api", id=request_id)


def model_card(desk: Desk) -> dict[str, Any]:
    backend = desk.service.backend
    about = {"quantization": backend.quantization, "context_tokens": backend.context_tokens, "reason": backend.reason}
    return {"id": backend.model, "object": "model", "created": 0, "owned_by": "qdesk", **about}


def completion(job: Job, last: Update) -> dict[str, Any]:
    message = {"role": "assistant", "content": job.text}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(last)}
    return {**_head(job, "chat.completion"), "choices": [choice], "usage": usage(last)}


def finish_reason(last: Update) -> str:
    return last.finish_reason or "stop"  # stopped by the person: the answer so far is the answer


def usage(last: Update) -> dict[str, Any]:
    return {
        "prompt_tokens": last.prompt_tokens,
        "completion_tokens": last.completion_tokens,
        "total_tokens": last.prompt_tokens + last.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": last.cached_tokens},
    }


@dataclass
class Chunks:
    """The chunks of one streamed answer: the role first, one a delta, the finish reason, usage where asked for."""

    job: Job
    usage: bool
    begun: bool = False

    def __call__(self, update: Update) -> list[str]:
        frames: list[dict[str, Any]] = []
        if update.deltas or update.status is Status.RUNNING or update.status.final:
            frames += self._begin()
        frames += [self._chunk({"content": text}) for text in update.deltas]
        if not update.status.final:
            return list(map(_json, frames))
        if trouble := trouble_of(update, self.job.id):
            return [*map(_json, frames), _json(error_body(trouble)), DONE]
        frames.append(self._chunk({}, finish_reason(update)))
        if self.usage:
            frames.append({**_head(self.job, "chat.completion.chunk"), "choices": [], "usage": usage(update)})
        return [*map(_json, frames), DONE]

    def _begin(self) -> list[dict[str, Any]]:
        if self.begun:
            return []
        self.begun = True
        return [self._chunk({"role": "assistant", "content": ""})]

    def _chunk(self, delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk: dict[str, Any] = {**_head(self.job, "chat.completion.chunk"), "choices": [choice]}
        return {**chunk, "usage": None} if self.usage else chunk


class ChatSocket:
    """WS /v1/chat/ws: a request frame as for POST, answered by the chunks as frames up to [DONE]; then the next.

    {"type": "cancel"} stops the answer that is under way, which keeps what it has.
    """

    def __init__(self, desk: Desk, socket: WebSocket) -> None:
        self.desk, self.socket = desk, socket
        self.job: Job | None = None
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
            if self.job:
                self.desk.service.end(self.job, Status.STOPPED)
        elif self.job or frames.full():
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
        self.job = await ask(self.desk, caller, chat_request(self.desk, body, caller, new_id()))
        try:
            chunks = Chunks(self.job, usage=_wants_usage(body))
            async with aclosing(updates(self.desk.service, self.job, _set(self.closed))) as seen:
                async for update in seen:
                    if update and update.status.final:
                        self.job = None  # whoever reads the last frame may ask the next question at once
                    for frame in chunks(update) if update else []:
                        await self.socket.send_text(frame)
        finally:
            self.job = None

    async def _say_error(self, error: EngineError | ApiError) -> None:
        await self.socket.send_text(_json(error_body(error)))


def body_of(shape: type[ChatBody] | Any) -> dict[str, Any]:
    """How /docs shows the body: it is read by hand, so that every fault of it is told in one way."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": shape.model_json_schema()}}}}


async def _set(event: asyncio.Event) -> None:
    await event.wait()


def _wants_usage(body: ChatBody) -> bool:
    return bool(body.stream_options and body.stream_options.include_usage)


def _is_cancel(text: str) -> bool:
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(frame, dict) and frame.get("type") == "cancel"


def _head(job: Job, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{job.id}", "object": kind, "created": int(job.queued_at.timestamp()), "model": job.model}


def _json(frame: dict[str, Any]) -> str:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
