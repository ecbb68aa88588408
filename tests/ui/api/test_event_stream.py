"""Server-sent events on their way: a silent stream says that it is still there, and nothing holds the pieces up."""

import asyncio

import httpx
import pytest
from starlette.types import Message

from engine.types import Status
from tests.engine.kit import UnrulyBackend, ended, question, service_on
from tests.server import RunningServer, bearer
from ui.api.answers import EventStream
from ui.api.shapes import ChatShape, Chunks


async def nothing_comes() -> Message:
    await asyncio.Event().wait()
    return {}


async def test_a_silent_stream_says_that_it_is_still_there() -> None:
    backend = UnrulyBackend()
    service = await service_on(backend)
    backend.hold()
    job = await service.submit(question())
    sent: asyncio.Queue[Message] = asyncio.Queue()

    stream = EventStream(service, [job], Chunks(ChatShape(), [job]), ping_s=0.01)
    streaming = asyncio.create_task(stream({"type": "http"}, nothing_comes, sent.put))
    pings = 0
    while pings < 2:
        pings += (await sent.get()).get("body") == b": ping\n\n"
    backend.go()
    await streaming
    rest = b"".join([sent.get_nowait().get("body", b"") for _ in range(sent.qsize())])
    assert rest.endswith(b"data: [DONE]\n\n")
    await ended(job)


async def test_who_waits_is_told_the_place_and_how_long_that_takes() -> None:
    backend = UnrulyBackend()
    service = await service_on(backend, max_concurrent_requests=1)
    service.places.measure(20)
    backend.hold()
    first, waiting = [await service.submit(question(person=person)) for person in ("ada", "bob")]
    sent: asyncio.Queue[Message] = asyncio.Queue()
    stream = EventStream(service, [waiting], Chunks(ChatShape(), [waiting]))
    streaming = asyncio.create_task(stream({"type": "http"}, nothing_comes, sent.put))
    assert (await sent.get())["status"] == 200
    assert (await sent.get())["body"] == b": waiting, position 1, about 20 s\n\n"
    backend.go()
    await streaming
    await ended(first)


async def test_a_stream_that_cannot_even_begin_ends_its_request() -> None:
    backend = UnrulyBackend()
    service = await service_on(backend)
    backend.hold()
    job = await service.submit(question())

    async def broken(message: Message) -> None:
        raise OSError("the connection is gone")

    with pytest.raises(OSError, match="gone"):
        await EventStream(service, [job], Chunks(ChatShape(), [job]))({"type": "http"}, nothing_comes, broken)
    assert (await ended(job)).status is Status.DISCONNECTED


def test_compression_leaves_streams_alone(server: RunningServer) -> None:
    """Packed, the pieces would come together at the end."""
    headers = {**bearer(), "Accept-Encoding": "gzip"}
    for path in ("/openapi.json", "/login"):
        assert httpx.get(server.url + path, headers=headers).headers["content-encoding"] == "gzip"
    asked = {"messages": [{"role": "user", "content": "long"}], "stream": True}
    with httpx.stream("POST", server.url + "/v1/chat/completions", json=asked, headers=headers) as answer:
        assert "content-encoding" not in answer.headers
        assert any("word0" in line for line in answer.iter_lines())  # with most of the answer still to come
