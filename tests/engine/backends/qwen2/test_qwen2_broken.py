"""The server's end with the in-process engine: it is told to, or the device is broken for good.

A broken device is told to open answers, the server says why, and ends as a failure.
"""

import json
import signal
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from engine.backends.qwen2 import weights
from engine.backends.qwen2.quantize import ready_folder
from tests.engine.backends.qwen2.broken_device import BREAK
from tests.engine.backends.qwen2.conftest import CPU
from tests.engine.backends.qwen2.tiny import make_tiny, tiny_settings
from tests.server import eventually, running_server
from tests.ui.test_shutdown import stream

PROGRAM = ("-m", "tests.engine.backends.qwen2.broken_device")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A server's settings with which a tiny model is ready as soon as it is read."""
    folder = tmp_path_factory.mktemp("broken")
    settings = tiny_settings(make_tiny(folder / "tiny", context=4096), folder)
    ready_folder(weights.resolve(settings, lambda _: None), "nf4", folder, CPU, lambda _: None)
    return {"backend": "qwen2", "model": settings.model, "models_dir": folder, "device": "cpu", "threads": 1}


def test_answers_that_fit_into_the_time_are_finished_and_a_second_signal_cuts_the_rest_off(
    tiny: dict[str, Any],
) -> None:
    chosen: dict[str, Any] = {"drain_s": 600, "max_new_tokens": 4000, "lookup_tokens": 0, **tiny}
    with running_server(**chosen) as server, ExitStack() as stack:
        short, finished = stream(server, "hello", stack, max_tokens=400, temperature=0)
        endless, cut_off = stream(server, "world", stack, temperature=0)
        eventually(lambda: server.status_of(endless) == "running")
        server.process.send_signal(signal.SIGTERM)
        assert finished.read().endswith(b"data: [DONE]\n\n")
        server.process.send_signal(signal.SIGTERM)
        assert b'"draining"' in cut_off.read()
        assert server.process.wait(60) == 0
        assert (server.status_of(short), server.status_of(endless)) == ("done", "interrupted")
        assert server.rows("select count(*) from exchanges where answer = ''") == [(0,)]


def test_open_answers_are_told_then_the_reason_and_the_process_ends_with_an_error(tiny: dict[str, Any]) -> None:
    with running_server(program=PROGRAM, ready=False, **tiny) as server, ExitStack() as stack:
        eventually(lambda: httpx.get(server.url + "/readyz").status_code == 200, within_s=120)
        open_answers = [stream(server, text, stack) for text in ("hello", "world")]
        eventually(lambda: {server.status_of(id) for id, _ in open_answers} == {"running"})
        open_answers.append(stream(server, BREAK, stack))
        for _, answer in open_answers:
            *_, error, done = answer.read().decode().strip().split("\n\n")
            assert json.loads(error.removeprefix("data: "))["error"]["code"] == "engine_error"
            assert done == "data: [DONE]"
        eventually(lambda: httpx.get(server.url + "/readyz").status_code == 503)  # it tries a step before it gives up
        ready = httpx.get(server.url + "/readyz").json()
        assert ready["status"] == "failed"
        assert "restart the server" in ready["reason"]
        assert server.process.wait(60) == 1
        assert {server.status_of(id) for id, _ in open_answers} == {"failed"}
        assert server.output().rstrip().endswith("restart the server.")
