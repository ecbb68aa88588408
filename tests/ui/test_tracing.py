"""Traces of requests at a collector: a receiver of OTLP over HTTP on loopback that reads what collectors read."""

import asyncio
import json
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from websockets.asyncio.client import connect

import main
from engine.settings import Settings
from storage import Store
from tests.server import bearer, eventually, running_server
from ui.console.doctor import examine
from ui.desk import Desk

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CHAT = "/v1/chat/completions"


class Collector(ThreadingHTTPServer):
    """Takes spans at /v1/traces."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Take)
        self.raw, self.batches, self.status = b"", list[ExportTraceServiceRequest](), 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def take(self, path: str, body: bytes) -> None:
        assert path == "/v1/traces"
        self.raw += body
        self.batches.append(ExportTraceServiceRequest.FromString(body))

    @property
    def spans(self) -> list[Span]:
        scopes = (scope for batch in self.batches for of in batch.resource_spans for scope in of.scope_spans)
        return sorted((span for scope in scopes for span in scope.spans), key=lambda span: span.start_time_unix_nano)

    def named(self, name: str) -> Span:
        (span,) = (span for span in self.spans if span.name == name)
        return span


class Take(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Collector)
        self.server.take(self.path, self.rfile.read(int(self.headers["content-length"])))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        yield collector
        collector.shutdown()


def question(text: str, **values: object) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **values}


def about(span: Span) -> dict[str, Any]:
    return {pair.key: _value(pair.value) for pair in span.attributes}


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, str(kind))


def test_a_request_is_one_trace_that_goes_on_with_the_callers(collector: Collector) -> None:
    with running_server(otlp_endpoint=collector.url) as server:
        headers = {**bearer(), "traceparent": f"00-{TRACE}-{PARENT}-01"}
        body = question("a secret question", max_tokens=3, temperature=0.5, user="somebody")
        answer = httpx.post(server.url + CHAT, json=body, headers=headers)
        assert answer.json()["choices"][0]["message"]["content"] == "You said: a"
    call, chat = collector.named(f"POST {CHAT}"), collector.named("chat scripted")
    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert call.parent_span_id.hex() == PARENT
    assert call.kind == Span.SPAN_KIND_SERVER
    assert about(call)["http.response.status_code"] == 200
    assert chat.parent_span_id == call.span_id
    parts = [collector.named(name) for name in ("queue", "prefill", "decode", "record")]
    assert {part.parent_span_id for part in parts} == {chat.span_id}
    edges = [edge for part in parts for edge in (part.start_time_unix_nano, part.end_time_unix_nano)]
    assert edges == sorted(edges)
    assert edges[0] == chat.start_time_unix_nano
    assert edges[-1] <= chat.end_time_unix_nano <= call.end_time_unix_nano
    told = about(chat)
    assert told["gen_ai.operation.name"] == "chat"
    assert told["gen_ai.request.model"] == told["gen_ai.response.model"] == "scripted"
    assert told["gen_ai.response.id"] == about(call)["qdesk.request_id"] == answer.headers["x-request-id"]
    assert (told["gen_ai.request.max_tokens"], told["gen_ai.request.temperature"]) == (3, 0.5)
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.usage.output_tokens"]) == (8, 3)
    assert told["gen_ai.response.finish_reasons"] == ["length"]
    resource = collector.batches[0].resource_spans[0].resource
    assert {pair.key: _value(pair.value) for pair in resource.attributes}["service.name"] == "qdesk"
    for word in (b"secret", b"You said", b"helpful", b"somebody"):
        assert word not in collector.raw


def test_faults_are_marked_and_nothing_is_said_of_what_they_say(collector: Collector) -> None:
    with running_server(otlp_endpoint=collector.url) as server:
        assert httpx.post(server.url + CHAT, json=question("fail midway"), headers=bearer()).status_code == 500
        assert httpx.post(server.url + "/", json={"prompt": "hello"}).status_code == 401
        assert httpx.get(server.url + "/readyz").status_code == 200
    assert [span.name for span in collector.spans if span.kind == Span.SPAN_KIND_SERVER] == [f"POST {CHAT}", "POST"]
    call, chat = collector.named(f"POST {CHAT}"), collector.named("chat scripted")
    assert call.status.code == chat.status.code == Status.STATUS_CODE_ERROR
    assert about(chat)["error.type"] == "engine_error"
    assert about(chat)["qdesk.status"] == "failed"
    assert about(collector.named("POST"))["http.response.status_code"] == 401
    assert b"script says" not in collector.raw


def test_each_request_on_a_socket_is_a_trace_of_its_own(collector: Collector) -> None:
    async def ask_twice(url: str) -> None:
        async with connect(url.replace("http", "ws") + "/v1/chat/ws", additional_headers=bearer()) as socket:
            for _ in range(2):
                await socket.send(json.dumps(question("hello")))
                while await socket.recv() != "[DONE]":
                    pass

    with running_server(otlp_endpoint=collector.url) as server:
        asyncio.run(ask_twice(server.url))
    chats = [span for span in collector.spans if span.name == "chat scripted"]
    assert [span.parent_span_id for span in chats] == [b"", b""]
    assert len({span.trace_id for span in chats}) == 2


def test_a_collector_that_never_answers_holds_nothing_up() -> None:
    """It takes connections and says nothing. Requests are answered, and the server ends while spans wait to be sent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with running_server(otlp_endpoint=endpoint) as server:
            for _ in range(3):
                assert httpx.post(server.url + CHAT, json=question("hello"), headers=bearer()).status_code == 200


def test_a_collector_that_refuses_is_spoken_of_once(collector: Collector) -> None:
    def ask() -> None:
        before = len(collector.batches)
        assert httpx.post(server.url + CHAT, json=question("hello"), headers=bearer()).status_code == 200
        eventually(lambda: len(collector.batches) > before)

    with running_server(otlp_endpoint=collector.url) as server:
        collector.status = 400
        ask()
        ask()
        collector.status = 200
        ask()
        eventually(lambda: "the collector takes traces again" in server.output())
        assert server.output().count("the collector takes no traces") == 1
        assert "span" not in server.output()


def test_what_is_not_installed_is_said_with_what_to_do(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    monkeypatch.delitem(sys.modules, "ui.tracing", raising=False)
    with pytest.raises(SystemExit, match=r"QDESK_OTLP_ENDPOINT is set, but .* --editable \"\.\[otel\]\""):
        main.trace(desk)
    assert _doctor_on_traces() == "bad"
    monkeypatch.undo()
    assert _doctor_on_traces() == "ok"


def _doctor_on_traces() -> str:
    settings = Settings(backend="scripted", otlp_endpoint="http://127.0.0.1:4318")
    return {finding.what: finding.mark for finding in examine(settings, Store(settings.sqlalchemy_url))}["traces"]
