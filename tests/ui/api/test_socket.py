"""WS /v1/chat/ws: the same request and the same chunks as frames."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.server import RunningServer, bearer, eventually, key_of


@asynccontextmanager
async def socket(server: RunningServer, **headers: str) -> AsyncIterator[ClientConnection]:
    address = server.url.replace("http", "ws") + "/v1/chat/ws"
    async with connect(address, additional_headers=headers or bearer()) as connection:
        yield connection


def question(text: str, **more: object) -> str:
    return json.dumps({"messages": [{"role": "user", "content": text}], **more})


async def answer(connection: ClientConnection) -> list[dict[str, Any]]:
    """The frames of one answer, up to [DONE]."""
    frames = []
    while (frame := await connection.recv()) != "[DONE]":
        frames.append(json.loads(frame))
    return frames


def text_of(frames: list[dict[str, Any]]) -> str:
    return "".join(frame["choices"][0]["delta"].get("content") or "" for frame in frames)


async def test_several_questions_one_after_another(server: RunningServer) -> None:
    async with socket(server) as connection:
        for text in ("hello", "你好"):
            await connection.send(question(text))
            frames = await answer(connection)
            assert text_of(frames) == f"You said: {text}"
            assert frames[0]["choices"][0]["delta"]["role"] == "assistant"
            assert frames[-1]["choices"][0]["finish_reason"] == "stop"


async def test_cancel_stops_the_answer_and_keeps_the_socket(server: RunningServer) -> None:
    async with socket(server) as connection:
        await connection.send(question("long"))
        first = [json.loads(await connection.recv()) for _ in range(3)]
        await connection.send('{"type": "cancel"}')
        frames = first + await answer(connection)
        assert text_of(frames).startswith("word0 word1")
        assert len(text_of(frames).split()) < 1000
        await connection.send(question("hello"))
        assert text_of(await answer(connection)) == "You said: hello"
    eventually(lambda: server.status_of(frames[0]["id"].removeprefix("chatcmpl-")) == "stopped")


@pytest.mark.parametrize("bad", ["", "{", "[]", '{"messages": 3}', question("x", temperature=9)])
async def test_a_bad_frame_is_an_error_frame(server: RunningServer, bad: str) -> None:
    async with socket(server) as connection:
        await connection.send(bad)
        assert json.loads(await connection.recv())["error"]["type"] == "invalid_request_error"
        await connection.send(question("hello"))
        assert text_of(await answer(connection)) == "You said: hello"


async def test_a_socket_that_goes_away_ends_its_request(server: RunningServer) -> None:
    async with socket(server) as connection:
        await connection.send(question("long"))
        id = json.loads(await connection.recv())["id"].removeprefix("chatcmpl-")
    eventually(lambda: server.status_of(id) == "disconnected")


async def test_a_socket_needs_a_key(server: RunningServer) -> None:
    for headers in ({"Authorization": "Bearer wrong"}, {"X-Nothing": "x"}):
        with pytest.raises(InvalidStatus) as refused:
            async with socket(server, **headers):
                pass
        assert refused.value.response.status_code in (401, 403)


async def test_another_sites_page_cannot_use_a_persons_session(server: RunningServer) -> None:
    with server.sign_in("ada") as browser:
        cookie = f"qdesk_session={browser.cookies['qdesk_session']}"
    with pytest.raises(InvalidStatus):
        async with socket(server, Cookie=cookie, Origin="https://elsewhere.example"):
            pass
    async with socket(server, Cookie=cookie, Origin=server.url) as connection:
        await connection.send(question("hello"))
        assert text_of(await answer(connection)) == "You said: hello"


async def test_one_request_at_a_time(server: RunningServer) -> None:
    async with socket(server, **bearer(key_of("ada"))) as connection:
        await connection.send(question("long"))
        await connection.recv()
        await connection.send(question("hello"))
        while "error" not in (frame := json.loads(await connection.recv())):
            pass
        assert frame["error"]["code"] == "request_in_progress"
