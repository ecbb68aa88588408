"""SIGTERM: new work is refused, answers may finish, the rest is cut off; every row is final and the exit code is 0."""

import asyncio
import json
import signal
from contextlib import ExitStack
from typing import Any

import httpx
import psutil

from bench.page import Page
from tests.server import RunningServer, bearer, eventually, running_server

CHAT = "/v1/chat/completions"
STUCK = """
import asyncio, engine.service, main
from engine.backends.scripted import ScriptedBackend
ScriptedBackend.stop = lambda self: asyncio.Event().wait()
engine.service.ENDING_S = 0.5
main.main()
"""


def stream(server: RunningServer, text: str, stack: ExitStack, **sampling: object) -> tuple[str, httpx.Response]:
    """A streamed answer under way: its id, and the response."""
    question = {"messages": [{"role": "user", "content": text}], "stream": True, **sampling}
    answer = stack.enter_context(httpx.stream("POST", server.url + CHAT, json=question, headers=bearer(), timeout=60))
    return answer.headers["x-request-id"], answer


def test_answers_that_fit_into_the_time_are_finished() -> None:
    with running_server(drain_s=30) as server, ExitStack() as stack:
        text = "a few words " * 20
        answers = [stream(server, text, stack) for _ in range(5)]
        eventually(lambda: server.rows("select count(*) from exchanges where status = 'running'") == [(5,)])
        assert psutil.Process(server.process.pid).children(recursive=True) == [], "there is nobody to be left behind"
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: httpx.get(server.url + "/readyz").json()["status"] == "draining")
        refused = httpx.post(
            server.url + CHAT, json={"messages": [{"role": "user", "content": "hi"}]}, headers=bearer()
        )
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "draining"
        for _, answer in answers:
            assert answer.read().endswith(b"data: [DONE]\n\n")
        assert server.process.wait(30) == 0
        assert {server.status_of(id) for id, _ in answers} == {"done"}


async def test_five_programs_and_five_pages_are_cut_off_and_kept() -> None:
    settings: dict[str, Any] = {"max_concurrent_requests": 7, "max_requests_per_user": 10, "max_new_tokens": 4000}
    with running_server(drain_s=0.5, **settings) as server, ExitStack() as stack, server.sign_in() as browser:
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
            pages = [Page(http, browser.cookies["qdesk_session"]) for _ in range(5)]
            for page in pages:
                await page.open()
                assert await page.ask("long") == ""
            answers = [stream(server, "long", stack) for _ in range(5)]  # two run and three wait
            eventually(lambda: server.rows("select count(*) from exchanges where answer like 'word0%'") == [(7,)])
            server.process.send_signal(signal.SIGTERM)
            for _, answer in answers:
                *_, error, done = answer.read().decode().strip().split("\n\n")
                assert json.loads(error.removeprefix("data: "))["error"]["code"] == "draining"
                assert done == "data: [DONE]"
            assert await asyncio.to_thread(server.process.wait, 30) == 0
            for page in pages:
                await page.close()
        assert server.rows("select status, count(*) from exchanges group by status") == [("interrupted", 10)]
        assert server.rows("select count(*) from exchanges where answer like 'word0 word1 %'") == [(7,)]


def test_a_second_signal_does_not_wait() -> None:
    with running_server(drain_s=600) as server, ExitStack() as stack:
        id, _ = stream(server, "long", stack)
        eventually(lambda: server.status_of(id) == "running")
        server.process.send_signal(signal.SIGINT)
        eventually(lambda: httpx.get(server.url + "/readyz").status_code == 503)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(30) == 0
        assert server.status_of(id) == "interrupted"


def test_an_engine_that_does_not_stop_is_left_behind() -> None:
    with running_server(program=("-c", STUCK), drain_s=0) as server, ExitStack() as stack:
        id, _ = stream(server, "long", stack)
        eventually(lambda: server.status_of(id) == "running")
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 0
        assert server.status_of(id) == "interrupted"
        assert "the engine does not stop; it is left behind" in server.output()
