"""A server before another engine: its full queue is this one's, to programs, in the log and in the figures."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from bench.page import Page
from tests.server import API_KEY, RunningServer, bearer, eventually, running_server
from tests.ui.api.test_metrics import metrics, value, values_of

CHAT = "/v1/chat/completions"
FULL = "The other server is busy; try again later."


@pytest.fixture(scope="module")
def engine() -> Iterator[RunningServer]:
    """A second Qdesk with one place."""
    with running_server(max_concurrent_requests=1, max_waiting_requests=0) as running:
        yield running


@pytest.fixture(scope="module")
def front(engine: RunningServer) -> Iterator[RunningServer]:
    with running_server(backend="remote", openai_base_url=f"{engine.url}/v1", openai_api_key=API_KEY) as running:
        yield running


@contextmanager
def taken(engine: RunningServer) -> Iterator[None]:
    """Somebody else has the engine's only place."""
    question = {"messages": [{"role": "user", "content": "stand still"}], "stream": True}
    with httpx.stream("POST", engine.url + CHAT, json=question, headers=bearer(), timeout=60):
        eventually(lambda: httpx.get(engine.url + "/readyz").json()["running"] == 1)
        yield
    eventually(lambda: httpx.get(engine.url + "/readyz").json()["running"] == 0)


def ask(server: RunningServer, *, stream: bool = False, key: str = "") -> httpx.Response:
    question = {"messages": [{"role": "user", "content": "hello"}], "stream": stream}
    headers = bearer() | ({"Idempotency-Key": key} if key else {})
    return httpx.post(server.url + CHAT, json=question, headers=headers, timeout=60)


def test_a_full_engine_is_a_full_queue_and_no_failure(front: RunningServer, engine: RunningServer) -> None:
    with taken(engine):
        refused, streamed, keyed = ask(front), ask(front, stream=True), ask(front, key="again")
        assert refused.headers["Retry-After"] == ask(engine).headers["Retry-After"]
    for answer in (refused, keyed):
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "queue_full")
        assert answer.json()["error"]["message"] == FULL
    *_, error, done = streamed.text.strip().split("\n\n")
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == "queue_full"
    assert done == "data: [DONE]"

    answered = ask(front, key="again")  # nothing was answered under this key, so it may be asked again
    assert answered.json()["choices"][0]["message"]["content"] == "You said: hello"
    assert answered.json()["usage"]["completion_tokens"] == 3
    logged = "select status, error, count(*) from exchanges group by status order by status"
    assert front.rows(logged) == [("done", None, 1), ("failed", FULL, 3)]
    values = values_of(metrics(front))
    assert value(values, "qdesk_request_rejected_total", reason="queue_full") == 3
    assert value(values, "qdesk_request_failure_total") == 0
    assert value(values, "qdesk_request_success_total", finished_reason="stop") == 1
    assert value(values, "qdesk_generation_tokens_total") == 3
    assert value(values, "qdesk_time_to_first_token_seconds_count") == 1
    assert value(values, "qdesk_e2e_request_latency_seconds_count") == 1
    assert "qdesk_kv_cache_usage_perc{" not in metrics(front)


async def test_a_page_says_that_all_places_are_taken(front: RunningServer, engine: RunningServer) -> None:
    said = asyncio.Event()

    def heard(frame: str) -> None:
        if "All places are taken at the moment. Please try again in a moment." in frame:
            said.set()

    with taken(engine), front.sign_in() as browser:
        async with httpx.AsyncClient(base_url=front.url, timeout=60) as http:
            page = Page(http, browser.cookies["qdesk_session"], heard)
            await page.open()
            assert await page.ask("hello") == ""
            async with asyncio.timeout(60):
                await said.wait()
            await page.close()
