"""What programs are told while the server cannot answer: the model loads, has failed, or the log is not written."""

import signal
import sqlite3
from contextlib import closing

import httpx

from tests.server import SLOW_START, RunningServer, bearer, eventually, running_server

HELLO = {"messages": [{"role": "user", "content": "hello"}]}


def condition(server: RunningServer) -> tuple[int, str, str]:
    """What /readyz says: HTTP status, state, and the reason."""
    ready = httpx.get(server.url + "/readyz")
    return ready.status_code, ready.json()["status"], ready.json().get("reason", "")


def ask(server: RunningServer) -> httpx.Response:
    return httpx.post(server.url + "/v1/chat/completions", json=HELLO, headers=bearer(), timeout=60)


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json().get("error", {}).get("code", "")


def test_while_the_model_loads_programs_are_told_to_come_again() -> None:
    with running_server(program=SLOW_START, ready=False) as server:
        eventually(lambda: condition(server) == (503, "loading", "The model is loading (downloading)."))
        refused = ask(server)
        assert code(refused) == (503, "model_loading")
        assert refused.headers["Retry-After"] == "5"
        simple = httpx.post(server.url + "/", json={"prompt": "hello"}, headers=bearer())
        assert (simple.status_code, simple.json()["status"]) == (503, 503)
        assert simple.json()["response"] == "The model is loading (downloading)."
        assert httpx.get(server.url + "/livez").status_code == 200
        assert httpx.get(server.url + "/health").json() == httpx.get(server.url + "/readyz").json()

        server.process.send_signal(signal.SIGUSR1)
        eventually(lambda: condition(server) == (200, "ready", ""))
        assert ask(server).json()["choices"][0]["message"]["content"] == "You said: hello"


def test_a_model_that_could_not_be_loaded_is_told_with_the_reason() -> None:
    with running_server(program=SLOW_START, ready=False) as server:
        server.process.send_signal(signal.SIGUSR2)
        eventually(lambda: condition(server) == (503, "failed", "There is no model in this folder."))
        refused = ask(server)
        assert code(refused) == (503, "engine_failed")
        assert refused.json()["error"]["message"] == "There is no model in this folder."
        assert "qdesk_ready{" in (metrics := httpx.get(server.url + "/metrics", headers=bearer()).text)
        assert next(line for line in metrics.splitlines() if line.startswith("qdesk_ready{")).endswith(" 0.0")


def test_a_server_that_is_stopped_while_it_loads_stops() -> None:
    with running_server(program=SLOW_START, ready=False) as server:
        eventually(lambda: condition(server)[1] == "loading")
    assert server.process.returncode == 0


def test_while_the_log_cannot_be_written_nothing_is_answered_and_the_server_is_not_ready() -> None:
    with running_server() as server:
        with closing(sqlite3.connect(server.data_dir / "qdesk.db", isolation_level=None)) as other:
            other.execute("begin exclusive")
            eventually(lambda: code(ask(server)) == (503, "log_failed"), within_s=60)
            status, state, reason = condition(server)
            assert (status, state) == (503, "failed")
            assert reason.startswith("The log cannot be written")
            other.execute("rollback")
        eventually(lambda: condition(server) == (200, "ready", ""))
        assert ask(server).status_code == 200
