"""The figures for Prometheus: every request counted once, however many end between two scrapes, and nobody named."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.backends import Guesses
from engine.backends.scripted import ScriptedBackend
from engine.errors import AccessEnded, EndedByAdministrator, QueueFull, UserLimit
from engine.job import Outcome
from engine.monitor import Monitor
from engine.types import Status
from tests.engine.kit import question, service_on
from tests.server import API_KEY, RunningServer, bearer, eventually, key_of, running_server
from ui.api.metrics import Figures

Values = dict[tuple[str, frozenset[tuple[str, str]]], float]


def values_of(page: str) -> Values:
    return {
        (sample.name, frozenset(sample.labels.items()) - {("model_name", "scripted")}): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def value(values: Values, name: str, **labels: str) -> float:
    return values.get((name, frozenset(labels.items())), 0.0)


async def test_no_outcome_is_lost_however_many_there_are() -> None:
    service = await service_on()
    figures = Figures(service, Monitor(service))
    service.on_outcome.append(figures.count)
    for _ in range(12_000):  # more than the service itself remembers
        for told in service.on_outcome:
            told(Outcome(1.0, Status.DONE, 0.1, 0.2, 0.5, 3, 7, 4, finish_reason="length"))
    values = values_of(figures.page().decode())
    assert value(values, "qdesk_request_success_total", finished_reason="length") == 12_000
    assert value(values, "qdesk_generation_tokens_total") == 36_000
    assert value(values, "qdesk_prompt_tokens_total") == 84_000
    assert value(values, "qdesk_prefix_cache_queries_total") == 84_000
    assert value(values, "qdesk_prefix_cache_hits_total") == 48_000
    assert value(values, "qdesk_e2e_request_latency_seconds_count") == 12_000
    await service.stop()


async def test_what_is_ended_from_outside_is_counted_by_whom() -> None:
    service = await service_on()
    figures = Figures(service, Monitor(service))
    ends = [(status, "") for status in Status if status.final]
    for status, error in [*ends, *((Status.CANCELLED, kind.code) for kind in (EndedByAdministrator, AccessEnded))]:
        figures.count(Outcome(1.0, status, 0.1, None, 0.5, 0, error=error))
    values = values_of(figures.page().decode())
    by = ("user", "disconnect", "timeout", "shutdown", "admin", "access")
    assert [value(values, "qdesk_request_aborted_total", by=who) for who in by] == [2, 1, 1, 1, 1, 1]
    assert value(values, "qdesk_request_failure_total") == 1
    assert value(values, "qdesk_e2e_request_latency_seconds_count") == len(ends) + 2
    await service.stop()


async def test_whoever_the_gate_refuses_is_counted_by_why() -> None:
    service = await service_on(max_concurrent_requests=1, max_waiting_requests=1, max_requests_per_user=1, drain_s=0)
    figures = Figures(service, Monitor(service))
    for person, refusal in (("ada", None), ("ada", UserLimit), ("bob", None), ("eve", QueueFull), ("rita", QueueFull)):
        with pytest.raises(refusal) if refusal else nullcontext():
            await service.submit(question("stand still", person))
    values = values_of(figures.page().decode())
    assert value(values, "qdesk_request_rejected_total", reason="user_limit") == 1
    assert value(values, "qdesk_request_rejected_total", reason="queue_full") == 2
    assert value(values, "qdesk_num_requests_waiting") == 1
    await service.stop()


async def test_guesses_are_counted_where_the_backend_makes_any() -> None:
    class Guessing(ScriptedBackend):
        def guesses(self) -> Guesses:
            return Guesses(guessed=10, right=7)

    names = {f"qdesk_spec_decode_num_{kind}_tokens_total": count for kind, count in (("draft", 10), ("accepted", 7))}
    for backend, told in ((Guessing(), True), (ScriptedBackend(), False)):
        service = await service_on(backend)
        values = values_of(Figures(service, Monitor(service)).page().decode())
        assert [value(values, name) for name in names] == (list(names.values()) if told else [0, 0])
        await service.stop()


def metrics(server: RunningServer) -> str:
    return httpx.get(server.url + "/metrics", headers=bearer()).text


@contextmanager
def standing_still(server: RunningServer) -> Iterator[str]:
    """Ada's program has asked for what does not end by itself: its id, once the engine has read the prompt."""
    question = {"messages": [{"role": "user", "content": "stand still"}], "stream": True}
    url, key = server.url + "/v1/chat/completions", bearer(key_of("ada"))
    with httpx.stream("POST", url, json=question, headers=key, timeout=60) as answer:
        eventually(lambda: value(values_of(metrics(server)), "qdesk_kv_cache_usage_perc") > 0)
        yield answer.headers["x-request-id"]


def test_each_way_to_end_is_counted_and_nobody_is_named() -> None:
    with running_server(accounts={"ada": "staff"}) as server:

        def ask(prompt: str, **more: object) -> int:
            question = {"messages": [{"role": "user", "content": prompt}], **more}
            url, key = server.url + "/v1/chat/completions", bearer(key_of("ada"))
            return httpx.post(url, json=question, headers=key, timeout=60).status_code

        assert [ask("hello"), ask("hello", max_tokens=1), ask("fail before"), ask("word " * 5000)] == [
            200,
            200,
            500,
            400,
        ]
        for key in (key_of("ada"), API_KEY):
            with standing_still(server) as id:
                assert httpx.post(f"{server.url}/v1/requests/{id}/cancel", headers=bearer(key)).status_code == 200
        page = metrics(server)
        [(ada,)] = server.rows("select id from users where name = 'ada'")
        errors = server.rows("select error from exchanges where status = 'cancelled' order by queued_at")
    assert errors == [(None,), ("An administrator ended this request.",)]
    values = values_of(page)
    assert value(values, "qdesk_request_aborted_total", by="user") == 1
    assert value(values, "qdesk_request_aborted_total", by="admin") == 1
    assert value(values, "qdesk_request_success_total", finished_reason="stop") == 1
    assert value(values, "qdesk_request_success_total", finished_reason="length") == 1
    assert value(values, "qdesk_request_failure_total") == 1
    assert value(values, "qdesk_request_rejected_total", reason="context_length_exceeded") == 1
    assert value(values, "qdesk_num_requests_running") == 0
    assert value(values, "qdesk_kv_cache_usage_perc") == 0
    assert value(values, "qdesk_time_to_first_token_seconds_count") == 2
    assert "ada" not in page
    assert ada not in page
