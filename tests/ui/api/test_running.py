"""What runs and waits: one's own, or everything for administrators; and ending it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.server import RunningServer, bearer, eventually, key_of, running_server


@pytest.fixture(scope="module")
def busy() -> Iterator[RunningServer]:
    with running_server(accounts={"ada": "staff", "bob": "staff"}, max_concurrent_requests=1) as running:
        yield running


@contextmanager
def running_long(server: RunningServer, name: str) -> Iterator[tuple[str, Iterator[str]]]:
    """A long answer under way: its id, and the lines of its stream that are still to come."""
    question = {"messages": [{"role": "user", "content": "long"}], "stream": True}
    url = server.url + "/v1/chat/completions"
    with httpx.stream("POST", url, json=question, headers=bearer(key_of(name)), timeout=30) as answer:
        lines = answer.iter_lines()
        next(lines)
        yield answer.headers["x-request-id"], lines


def listed(server: RunningServer, key: str) -> dict[str, dict[str, object]]:
    found = httpx.get(server.url + "/v1/requests", headers=bearer(key)).json()["data"]
    return {request["id"]: request for request in found}


def cancel(server: RunningServer, key: str, id: str) -> httpx.Response:
    return httpx.post(f"{server.url}/v1/requests/{id}/cancel", headers=bearer(key), timeout=30)


def test_requests_are_shown_to_their_owner_and_to_administrators(busy: RunningServer) -> None:
    with running_long(busy, "ada") as (id, _):
        assert listed(busy, key_of("ada"))[id]["status"] == "running"
        assert listed(busy, key_of("bob")) == {}
        seen = listed(busy, key_of("admin"))[id]
        assert seen["user"] == "ada"
        assert "content" not in json.dumps(seen)


def test_ones_own_request_can_be_cancelled(busy: RunningServer) -> None:
    with running_long(busy, "ada") as (id, lines):
        answer = cancel(busy, key_of("ada"), f"chatcmpl-{id}")
        assert answer.status_code == 200
        assert answer.json()["status"] == "cancelled"
        rest = [line for line in lines if line]
        assert json.loads(rest[-2].removeprefix("data: "))["error"]["code"] == "cancelled"
        assert rest[-1] == "data: [DONE]"
    assert busy.status_of(id) == "cancelled"


def test_somebody_elses_request_is_as_unknown_as_none(busy: RunningServer) -> None:
    with running_long(busy, "ada") as (id, _):
        foreign, unknown = cancel(busy, key_of("bob"), id), cancel(busy, key_of("bob"), "0" * 32)
        assert foreign.status_code == unknown.status_code == 404
        assert foreign.json() == unknown.json()
        assert listed(busy, key_of("ada"))[id]["status"] == "running"


def test_an_administrator_cancels_anybodys_and_it_is_audited(busy: RunningServer) -> None:
    with running_long(busy, "ada") as (id, _):
        assert cancel(busy, key_of("admin"), id).status_code == 200
    assert busy.rows("select actor, action from audit where target = ?", id) == [("admin", "request.cancel")]


def test_a_waiting_request_can_be_cancelled(busy: RunningServer) -> None:
    with running_long(busy, "ada"), running_long(busy, "bob") as (id, _):
        assert listed(busy, key_of("bob"))[id]["position"] == 1
        assert cancel(busy, key_of("bob"), id).json()["status"] == "cancelled"


def test_metrics_count_what_happened(busy: RunningServer) -> None:
    def metrics() -> str:
        return httpx.get(busy.url + "/metrics", headers=bearer()).text

    question = {"messages": [{"role": "user", "content": "hello"}]}  # which gets a first token, as not all before did
    url = busy.url + "/v1/chat/completions"
    assert httpx.post(url, json=question, headers=bearer(key_of("bob")), timeout=30).status_code == 200
    with running_long(busy, "ada"):
        assert 'qdesk_num_requests_running{model_name="scripted"} 1.0' in metrics()
    eventually(lambda: 'qdesk_num_requests_running{model_name="scripted"} 0.0' in metrics())
    seen = metrics()
    assert 'qdesk_request_aborted_total{by="disconnect",model_name="scripted"}' in seen
    assert "qdesk_time_to_first_token_seconds_bucket" in seen
    assert "ada" not in seen
