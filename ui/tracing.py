"""Traces for an OpenTelemetry collector: one a request, made when the request has ended, from the job's own times.

An HTTP call, and below it the request with its waiting, prefill, decode and record; a `traceparent` that comes with the
call is gone on with. Attributes have the names of OpenTelemetry's conventions for generative AI. No span holds a word
of a prompt or an answer, or says whose it is. Spans leave on the SDK's own thread, from a queue that is bounded and
drops what is too much: nothing waits for the collector, or fails with it.

Imported only where QDESK_OTLP_ENDPOINT is set, because it needs the extra `otel`.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from datetime import datetime

from loguru import logger
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span, SpanKind, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.job import Job
from engine.types import Status
from ui.guard import PROBES, is_api

EVERY_MS = 1000  # what has ended meanwhile is sent together
SENDING_S = 5.0  # for a collector to take it
LEAVING_S = 3.0  # so long a stopping server waits for its last spans to be taken
WATCHING = PROBES | {"/metrics", "/openapi.json"}  # not worth a trace
FAULTS = {Status.FAILED, Status.TIMED_OUT, Status.INTERRUPTED}

_call: ContextVar[Context | None] = ContextVar("call", default=None)  # the span of the call that a job comes from


class Tracing:
    def __init__(self, endpoint: str, version: str) -> None:
        """`endpoint`: the collector's base address. Headers and resource attributes: the SDK's own OTEL_* variables."""
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
        ours = Resource({"service.name": "qdesk", "service.version": version})
        self._provider = TracerProvider(resource=ours.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
        collector = Collector(f"{endpoint.rstrip('/')}/v1/traces", timeout=SENDING_S)
        self._provider.add_span_processor(BatchSpanProcessor(collector, schedule_delay_millis=EVERY_MS))
        self._tracer = self._provider.get_tracer("qdesk", version)

    def begin(self, name: str, since_ns: int, within: Context | None, kind: SpanKind = SpanKind.INTERNAL) -> Span:
        return self._tracer.start_span(name, within, kind, start_time=since_ns)

    def tell(self, job: Job) -> None:
        """The spans of a job that is closed. It runs in the context of whoever asked."""
        origin_ns = _ns(job.queued_at)
        span = self.begin(f"{_operation(job)} {job.model}", origin_ns, _call.get())
        span.set_attributes(dict(_about(job)))
        if job.status in FAULTS:
            span.set_status(StatusCode.ERROR)
        within = set_span_in_context(span, Context())
        for name, since_s, until_s in _phases(job):
            self.begin(name, origin_ns + _in_ns(since_s), within).end(origin_ns + _in_ns(until_s))
        span.end(origin_ns + _in_ns(job.age_s))

    async def stop(self) -> None:
        """Send what is left; a collector that does not take it is waited for no longer than LEAVING_S."""
        loop, sent = asyncio.get_running_loop(), asyncio.Event()

        def send() -> None:
            self._provider.shutdown()
            loop.call_soon_threadsafe(sent.set)

        threading.Thread(target=send, name="last spans", daemon=True).start()
        try:
            async with asyncio.timeout(LEAVING_S):
                await sent.wait()
        except TimeoutError:
            pass


class Collector(OTLPSpanExporter):
    """Says once that the collector takes no traces, and once that it does again; the SDK would say so each second."""

    _lost = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        lost = result is not SpanExportResult.SUCCESS
        if lost and not self._lost:
            logger.warning("the collector takes no traces; they are lost until it does")
        elif self._lost and not lost:
            logger.info("the collector takes traces again")
        self._lost = lost
        return result


class Traced:
    """Gives each call to the API its span, and jobs that begin in it a parent."""

    def __init__(self, app: ASGIApp, tracing: Tracing) -> None:
        self.app, self.tracing = app, tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or not is_api(scope) or scope["path"] in WATCHING:
            return await self.app(scope, receive, send)
        remote = TraceContextTextMapPropagator().extract(Headers(scope=scope))
        if scope["type"] == "websocket":  # stays open for as many requests as its program likes
            _call.set(remote)
            return await self.app(scope, receive, send)
        return await self._http(remote, scope, receive, send)

    async def _http(self, remote: Context, scope: Scope, receive: Receive, send: Send) -> None:
        began_ns, began_s, status = time.time_ns(), time.perf_counter(), 0

        async def send_and_see(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        span = self.tracing.begin(scope["method"], began_ns, remote, SpanKind.SERVER)
        _call.set(set_span_in_context(span, remote))
        try:
            await self.app(scope, receive, send_and_see)
        except Exception as error:
            span.set_attribute("error.type", type(error).__name__)  # what it says may be anything
            raise
        finally:
            _describe(span, scope, status or 500)
            span.end(began_ns + _in_ns(time.perf_counter() - began_s))


def _describe(span: Span, scope: Scope, status: int) -> None:
    span.set_attributes({"http.request.method": scope["method"], "http.response.status_code": status})
    span.set_attribute("qdesk.request_id", scope["state"]["request_id"])
    if path := getattr(scope.get("route"), "path", ""):  # none where nothing was found, or nobody let in
        span.set_attribute("http.route", path)
        span.update_name(f"{scope['method']} {path}")
    if status >= 500:
        span.set_status(StatusCode.ERROR)


def _operation(job: Job) -> str:
    return "text_completion" if job.request.messages[0].role == "text" else "chat"


def _phases(job: Job) -> Iterator[tuple[str, float, float]]:
    """What it went through: name, begin and end in seconds after it was asked."""
    finished_s = job.age_s if job.finished_s is None else job.finished_s
    yield "queue", 0.0, finished_s if job.started_s is None else job.started_s
    if job.started_s is not None:
        yield "prefill", job.started_s, finished_s if job.first_token_s is None else job.first_token_s
    if job.first_token_s is not None:
        yield "decode", job.first_token_s, finished_s
    yield "record", finished_s, job.age_s


def _about(job: Job) -> Iterator[tuple[str, AttributeValue]]:
    sampling = job.request.sampling
    yield "gen_ai.operation.name", _operation(job)
    yield "gen_ai.provider.name", "qdesk"
    yield "gen_ai.request.model", job.model
    yield "gen_ai.response.model", job.model
    yield "gen_ai.response.id", job.id
    yield "gen_ai.usage.input_tokens", job.prompt_tokens
    yield "gen_ai.usage.output_tokens", job.completion_tokens
    yield "gen_ai.usage.cache_read.input_tokens", job.cached_tokens
    for name in ("max_tokens", "temperature", "top_p", "top_k", "seed", "frequency_penalty", "presence_penalty"):
        if (value := getattr(sampling, name)) is not None:
            yield f"gen_ai.request.{name}", value
    yield "gen_ai.output.type", "text" if sampling.json_schema is None else "json"
    if job.first_token_s is not None:
        yield "gen_ai.response.time_to_first_chunk", job.first_token_s
    if job.finish_reason:
        yield "gen_ai.response.finish_reasons", (job.finish_reason,)
    if job.status in FAULTS:
        yield "error.type", job.error.code if job.error else str(job.status)
    yield "qdesk.status", str(job.status)
    yield "qdesk.source", job.request.source
    yield "qdesk.queue_depth", job.queue_depth


def _ns(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000) * 1000  # a datetime has microseconds


def _in_ns(seconds: float) -> int:
    return round(seconds * 1_000_000_000)
