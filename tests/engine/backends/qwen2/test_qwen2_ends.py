"""The server is told to end while the real engine answers."""

import signal
from contextlib import ExitStack
from typing import Any

import pytest

from engine.backends.qwen2 import weights
from engine.backends.qwen2.quantize import ready_folder
from tests.engine.backends.qwen2.conftest import CPU
from tests.engine.backends.qwen2.tiny import make_tiny, tiny_settings
from tests.server import eventually, running_server
from tests.ui.test_shutdown import stream


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A server's settings with which a tiny model is ready as soon as it is read."""
    folder = tmp_path_factory.mktemp("models")
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
