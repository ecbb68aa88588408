"""Answers as objects, of a schema in each client's own way and of any, from the packaged model."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.clients.talking import Program
from tests.server import RunningServer, bearer, eventually, running_server

LOADED_WITHIN_S = 1700  # where it is neither downloaded nor packed yet; else seconds
pytestmark = [pytest.mark.model, pytest.mark.timeout(1800)]
CITY = "Paris is a large city in France. Tell me its name, its country, and whether it is large."


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(backend="qwen2", model="packaged", forged=False, ready=False) as running:
        eventually(lambda: httpx.get(running.url + "/readyz").status_code == 200, within_s=LOADED_WITHIN_S)
        yield running


def test_an_answer_is_an_object_of_the_schema(client: Program, server: RunningServer) -> None:
    """The client has made an object of its own of it; what is in it is up to a small model."""
    answer = client.order("schema", server.url, CITY, temperature=0)
    assert answer.keys() == {"name", "country", "large"}, answer
    assert answer["country"] in ("France", "Spain", "Italy")
    assert isinstance(answer["name"], str)
    assert isinstance(answer["large"], bool)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_an_answer_is_some_object_where_any_will_do(server: RunningServer, stream: bool) -> None:
    body = {
        "messages": [{"role": "user", "content": f"{CITY} Answer in JSON."}],
        "response_format": {"type": "json_object"},
        "temperature": 0,
        "max_tokens": 200,
        "stream": stream,
    }
    answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, headers=bearer(), timeout=120)
    said, ended = in_pieces(answer.text) if stream else whole(answer.text)
    assert ended == "stop"
    assert "Paris" in json.dumps(json.loads(said)), said
    assert isinstance(json.loads(said), dict)


def whole(answer: str) -> tuple[str, str]:
    """What was said, and why it ended."""
    (choice,) = json.loads(answer)["choices"]
    return choice["message"]["content"], choice["finish_reason"]


def in_pieces(events: str) -> tuple[str, str]:
    """The same of an answer that came as events."""
    data = [line.removeprefix("data: ") for line in events.splitlines() if line.startswith("data: {")]
    choices = [choice for event in data for choice in json.loads(event)["choices"]]
    assert len(choices) > 3
    return "".join(choice["delta"].get("content") or "" for choice in choices), choices[-1]["finish_reason"]
