"""Answers as objects of a schema, asked for in each client's own way, from the packaged model."""

from collections.abc import Iterator

import httpx
import pytest

from tests.clients.talking import Program
from tests.server import RunningServer, eventually, running_server

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
