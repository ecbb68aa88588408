"""Servers for the remote backend: a small OpenAI-shaped one over a script, and one that says canned bytes."""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from engine.backends.scripted import ScriptedBackend
from engine.errors import EngineError
from engine.types import ChatRequest, Delta, Done, Message, Sampling


class Upstream:
    """An ASGI app: /v1/models and streamed /v1/chat/completions. `idle` is set while no answer is under way."""

    def __init__(self) -> None:
        self.url = ""
        self.script = ScriptedBackend(pause_s=0.001)
        self.bodies: list[dict[str, Any]] = []
        self.connections: set[tuple[str, int]] = set()  # their other ends
        self.idle = asyncio.Event()
        self.idle.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        self.connections.add(scope["client"])
        if request.url.path == "/v1/models":
            await _start(send, "application/json")
            await _send(send, json.dumps({"data": [{"id": "scripted", "max_model_len": 2048}]}), more=False)
            return
        body = await request.json()
        self.bodies.append(body)
        await _start(send, "text/event-stream")
        answering = asyncio.create_task(self._answer(body, send))
        leaving = asyncio.ensure_future(receive())  # after the body, the next message is that the client went away
        await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
        for task in (answering, leaving):
            task.cancel()
        await asyncio.wait([answering, leaving])
        if not self.script.active:
            self.idle.set()

    async def _answer(self, body: dict[str, Any], send: Send) -> None:
        self.idle.clear()
        async with aclosing(self._frames(body)) as frames:
            async for frame in frames:
                await _send(send, f"data: {frame}\n\n")
        await _send(send, "", more=False)

    async def _frames(self, body: dict[str, Any]) -> AsyncGenerator[str, None]:
        request = ChatRequest(
            messages=tuple(Message(message["role"], message["content"]) for message in body["messages"]),
            sampling=Sampling(max_tokens=body.get("max_tokens"), stop=tuple(body.get("stop", ()))),
            person=None,
            source="api",
        )
        try:
            async with aclosing(self.script.stream(request)) as events:
                async for event in events:
                    match event:
                        case Delta(text):
                            yield _chunk({"content": text})
                        case Done():
                            yield _chunk({}, event.finish_reason)
                            usage = {
                                "prompt_tokens": event.prompt_tokens,
                                "completion_tokens": event.completion_tokens,
                            }
                            yield json.dumps({"choices": [], "usage": usage})
        except EngineError as error:
            yield json.dumps({"error": {"message": str(error), "code": error.code}})
        yield "[DONE]"


def _chunk(delta: dict[str, str], finish_reason: str | None = None) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}, ensure_ascii=False)


async def _start(send: Send, media_type: str) -> None:
    headers = [(b"content-type", media_type.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})


async def _send(send: Send, text: str, *, more: bool = True) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": more})


@asynccontextmanager
async def upstream() -> AsyncIterator[Upstream]:
    """Serve an Upstream with uvicorn on loopback."""
    app = Upstream()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        app.url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="error", timeout_graceful_shutdown=1))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield app
        finally:
            server.should_exit = True
            await serving


HANGS = b"\0"  # at the end of a canned answer: nothing follows, and the connection stays open


class Canned:
    """Answers the n-th connection with the n-th of `answers` and closes it; b"" closes it without a word."""

    def __init__(self, answers: list[bytes]) -> None:
        self.answers = answers
        self.requests: list[bytes] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
        )
        self.requests.append(head + await reader.readexactly(length))
        said = self.answers.pop(0) if self.answers else b""
        writer.write(said.removesuffix(HANGS))
        await writer.drain()
        if said.endswith(HANGS):
            await reader.read()  # until whoever asked goes away
        writer.close()


@asynccontextmanager
async def canned(*answers: bytes) -> AsyncIterator[Canned]:
    server = Canned(list(answers))
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1"
    async with listening:
        yield server


def reply(body: str, status: str = "200 OK", headers: str = "") -> bytes:
    """A whole HTTP answer that ends with its connection."""
    return f"HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n{body}".encode()


def stream_of(*chunks: object) -> bytes:
    """A streamed answer of these chunks: strings as they are, other things as JSON."""
    datas = [chunk if isinstance(chunk, str) else json.dumps(chunk, ensure_ascii=False) for chunk in chunks]
    return reply("".join(f"data: {data}\n\n" for data in datas), headers="Content-Type: text/event-stream\r\n")


def delta(text: str, finish_reason: str | None = None) -> dict[str, object]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}]}
