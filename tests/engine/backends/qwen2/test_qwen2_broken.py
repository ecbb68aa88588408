"""The real server on a device that fails: at one request of many, for a while, and for good.

The tests follow one another on one server, which the last of them breaks.
"""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from engine.backends.qwen2 import weights
from engine.backends.qwen2.quantize import ready_folder
from engine.backends.qwen2.stepping import FAILED, OUT_OF_MEMORY
from tests.engine.backends.qwen2.broken_device import BREAK, FAULTS, HANG, MEMORY
from tests.engine.backends.qwen2.conftest import CPU
from tests.engine.backends.qwen2.tiny import make_tiny, tiny_settings
from tests.server import RunningServer, bearer, eventually, running_server

CHAT = "/v1/chat/completions"
PROGRAM = ("-m", "tests.engine.backends.qwen2.broken_device")
INNOCENT = ("hello", "world", "what is this", "你好")
LONG = 300  # tokens of an innocent's answer, in whose first some twenty all faults strike


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("models")
    settings = tiny_settings(make_tiny(folder / "tiny", context=4096), folder)
    ready_folder(weights.resolve(settings, lambda _: None), "nf4", folder, CPU, lambda _: None)
    chosen: dict[str, Any] = {
        "backend": "qwen2",
        "model": settings.model,
        "models_dir": folder,
        "device": "cpu",
        "threads": 1,
        "max_concurrent_requests": len(INNOCENT) + len(FAULTS),
        "max_requests_per_user": len(INNOCENT) + len(FAULTS),
        "max_new_tokens": LONG,
    }
    with running_server(program=PROGRAM, ready=False, **chosen) as running:
        eventually(lambda: is_ready(running), within_s=120)
        yield running


def is_ready(server: RunningServer) -> bool:
    return httpx.get(server.url + "/readyz").status_code == 200


def stream(server: RunningServer, text: str, stack: ExitStack) -> tuple[str, httpx.Response]:
    """A streamed answer that ends with LONG tokens: its id, and the response."""
    question = {"messages": [{"role": "user", "content": text}], "stream": True, "ignore_eos": True}
    answer = stack.enter_context(httpx.stream("POST", server.url + CHAT, json=question, headers=bearer(), timeout=60))
    return answer.headers["x-request-id"], answer


def under_way(server: RunningServer, texts: tuple[str, ...], stack: ExitStack) -> list[tuple[str, httpx.Response]]:
    """Answers to these that have begun."""
    answers = [stream(server, text, stack) for text in texts]
    eventually(lambda: {server.status_of(id) for id, _ in answers} == {"running"})
    return answers


def assert_whole(server: RunningServer, id: str, answer: httpx.Response) -> None:
    """All the tokens that were asked for have come, and are in the log."""
    *events, last, done = answer.read().decode().strip().split("\n\n")
    assert done == "data: [DONE]"
    assert json.loads(last.removeprefix("data: "))["choices"][0]["finish_reason"] == "length"
    said = "".join(
        json.loads(event.removeprefix("data: "))["choices"][0]["delta"].get("content", "") for event in events
    )
    row = "select status, completion_tokens, answer from exchanges where id = ?"
    assert server.rows(row, id) == [("done", LONG, said.replace("\0", "\ufffd"))]


def assert_failed(server: RunningServer, id: str, answer: httpx.Response, said: str) -> None:
    """The program is told so, and the log as well, which has what came before."""
    *_, error, done = answer.read().decode().strip().split("\n\n")
    assert done == "data: [DONE]"
    told = json.loads(error.removeprefix("data: "))["error"]
    assert (told["code"], told["message"]) == ("engine_error", f"{said} (request {id})")
    assert server.rows("select status, error from exchanges where id = ?", id) == [("failed", said)]


def assert_served(server: RunningServer) -> None:
    question = {"messages": [{"role": "user", "content": "the next"}], "max_tokens": 5}
    answer = httpx.post(server.url + CHAT, json=question, headers=bearer(), timeout=60)
    assert answer.status_code == 200
    assert answer.json()["usage"]["completion_tokens"] == 5
    eventually(lambda: is_ready(server))
    ready = httpx.get(server.url + "/readyz").json()
    assert (ready["running"], ready["waiting"]) == (0, 0)


def test_each_fault_fails_its_own_request_while_others_are_answered_to_their_end(server: RunningServer) -> None:
    """A bug, no memory, and logits that are no numbers: before, at and after the first token, all at once."""
    with ExitStack() as stack:
        innocent = under_way(server, INNOCENT, stack)
        victims = {mark: stream(server, f"{mark} hello", stack) for mark in FAULTS}
        for mark, (id, answer) in victims.items():
            error, after = FAULTS[mark]
            assert_failed(server, id, answer, OUT_OF_MEMORY if error is MEMORY else FAILED)
            ((text,),) = server.rows("select answer from exchanges where id = ?", id)
            assert after == 1 or bool(text) == (after == 20)
        for id, answer in innocent:
            assert_whole(server, id, answer)
    ends = dict(server.rows("select status, min(finished_at) from exchanges group by status"))
    assert server.rows("select max(finished_at) < ? from exchanges where status = 'failed'", ends["done"]) == [(True,)]
    assert_served(server)


def test_a_step_that_hangs_is_told_and_those_beside_it_go_on_when_it_ends(server: RunningServer) -> None:
    """Whoever hangs in it can be ended meanwhile."""
    with ExitStack() as stack:
        innocent = under_way(server, INNOCENT[:2], stack)
        hanging, _ = stream(server, HANG, stack)
        eventually(lambda: httpx.get(server.url + "/readyz").json()["status"] == "stalled")
        assert httpx.get(server.url + "/readyz").status_code == 503
        assert httpx.get(server.url + "/livez").status_code == 200
        cancelled = httpx.post(f"{server.url}/v1/requests/{hanging}/cancel", headers=bearer(), timeout=60)
        assert cancelled.json()["status"] == server.status_of(hanging) == "cancelled"
        server.process.send_signal(signal.SIGUSR1)
        for id, answer in innocent:
            assert_whole(server, id, answer)
    eventually(lambda: is_ready(server))
    assert_served(server)


def test_open_answers_are_told_then_the_reason_and_the_process_ends_with_an_error(server: RunningServer) -> None:
    with ExitStack() as stack:
        open_answers = under_way(server, INNOCENT[:2], stack)
        open_answers.append(stream(server, BREAK, stack))
        for id, answer in open_answers:
            assert_failed(server, id, answer, FAILED)
        eventually(lambda: httpx.get(server.url + "/readyz").status_code == 503)  # it tries a step before it gives up
        ready = httpx.get(server.url + "/readyz").json()
        assert ready["status"] == "failed"
        assert "restart the server" in ready["reason"]
        assert server.process.wait(60) == 1
        assert server.output().rstrip().endswith("restart the server.")
