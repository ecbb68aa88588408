"""A device that is broken for good: open answers are told, the server says why, and ends as a failure."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx

from engine.backends.qwen2 import weights
from engine.backends.qwen2.quantize import ready_folder
from tests.engine.backends.qwen2.broken_device import BREAK
from tests.engine.backends.qwen2.conftest import CPU
from tests.engine.backends.qwen2.tiny import make_tiny, tiny_settings
from tests.server import eventually, running_server
from tests.ui.test_shutdown import stream

PROGRAM = ("-m", "tests.engine.backends.qwen2.broken_device")


def test_open_answers_are_told_then_the_reason_and_the_process_ends_with_an_error(tmp_path: Path) -> None:
    settings = tiny_settings(make_tiny(tmp_path / "tiny", context=4096), tmp_path)
    ready_folder(weights.resolve(settings, lambda _: None), "nf4", tmp_path, CPU, lambda _: None)
    chosen: dict[str, Any] = {
        "backend": "qwen2",
        "model": settings.model,
        "models_dir": tmp_path,
        "device": "cpu",
        "threads": 1,
    }
    with running_server(program=PROGRAM, ready=False, **chosen) as server, ExitStack() as stack:
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
