"""GET /metrics for Prometheus: for administrators and the operator's key, because load tells about people.

Names follow vLLM's, with the prefix qdesk_; seconds; labels are the model, the GPU and a few
fixed words, never a person.
"""

from collections.abc import Iterator

from nicegui import app
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.responses import Response

from engine.backends import Guesses, KnowsCache, KnowsGuesses
from engine.errors import AccessEnded, EndedByAdministrator
from engine.job import Outcome
from engine.monitor import Monitor
from engine.service import ChatService
from engine.types import Status
from ui.api.described import replies
from ui.desk import Desk

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600)
LAG = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5)
PER_TOKEN = (0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1)
ABORTED = {
    Status.STOPPED: "user",
    Status.CANCELLED: "user",
    Status.DISCONNECTED: "disconnect",
    Status.TIMED_OUT: "timeout",
    Status.INTERRUPTED: "shutdown",
}
OVERRULED = {EndedByAdministrator.code: "admin", AccessEnded.code: "access"}  # these errors say more than the status


def register(desk: Desk) -> None:
    disable_created_metrics()  # a second series for each counter, which nobody reads
    figures = Figures(desk.service, desk.monitor)
    desk.service.on_outcome.append(figures.count)

    @app.get("/metrics", tags=["operations"], response_class=Response, responses=replies(None))
    async def metrics() -> Response:
        """Figures for Prometheus; needs the operator's key, or a key or session of an administrator."""
        return Response(figures.page(), media_type=CONTENT_TYPE_LATEST)


class Figures:
    """What has ended is counted as it ends, so that nothing is lost between two scrapes; gauges are read when asked."""

    def __init__(self, service: ChatService, monitor: Monitor) -> None:
        self.service, self.monitor = service, monitor
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(namespace="qdesk", registry=self.registry)
        self.queue = self._histogram("request_queue_time_seconds", "From asking to running.", SECONDS)
        self.first = self._histogram("time_to_first_token_seconds", "From asking to the first token.", SECONDS)
        self.whole = self._histogram("e2e_request_latency_seconds", "From asking to the end.", SECONDS)
        self.between = self._histogram("inter_token_latency_seconds", "Mean time between tokens.", PER_TOKEN)
        about = "How late the event loop comes to what is due, ten looks a second."
        self.lag = Histogram("qdesk_event_loop_lag_seconds", about, buckets=LAG, registry=self.registry)
        monitor.on_lag.append(self.lag.observe)
        self.done = self._counter("request_success", "Requests that came to their own end.", "finished_reason")
        self.failed = self._counter("request_failure", "Requests that the engine failed at.")
        self.aborted = self._counter("request_aborted", "Requests that were ended from outside.", "by")
        self.prompt = self._counter("prompt_tokens", "Tokens of prompts.")
        self.generated = self._counter("generation_tokens", "Tokens generated.")
        self.looked_up = self._counter("prefix_cache_queries", "Tokens of prompts that were read, or found there.")
        self.hits = self._counter("prefix_cache_hits", "Tokens of prompts that were found in the prefix cache.")

    def _histogram(self, name: str, about: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"qdesk_{name}", about, ["model_name"], buckets=buckets, registry=self.registry)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"qdesk_{name}", about, ["model_name", *labels], registry=self.registry)

    def page(self) -> bytes:
        return generate_latest(self.registry)

    def count(self, outcome: Outcome) -> None:
        """Take in a request that has ended."""
        model = self.service.backend.model
        self.queue.labels(model).observe(outcome.queue_s)
        self.whole.labels(model).observe(outcome.total_s)
        self.prompt.labels(model).inc(outcome.prompt_tokens)
        self.generated.labels(model).inc(outcome.completion_tokens)
        self.looked_up.labels(model).inc(outcome.prompt_tokens)
        self.hits.labels(model).inc(outcome.cached_tokens)
        if outcome.ttft_s is not None:
            self.first.labels(model).observe(outcome.ttft_s)
            if outcome.completion_tokens > 1:
                self.between.labels(model).observe((outcome.total_s - outcome.ttft_s) / (outcome.completion_tokens - 1))
        match outcome.status:
            case Status.DONE:
                self.done.labels(model, outcome.finish_reason or "stop").inc()
            case Status.FAILED:
                self.failed.labels(model).inc()
            case status:
                self.aborted.labels(model, OVERRULED.get(outcome.error, ABORTED[status])).inc()

    def collect(self) -> Iterator[Metric]:
        service, gate = self.service, self.service.gate
        running, waiting = service.places.own()
        for name, about, value in (
            ("num_requests_running", "Requests that run.", running),
            ("num_requests_waiting", "Requests that wait.", waiting),
            ("requests_running_limit", "Requests that may run at once.", gate.limits.concurrent),
            ("requests_waiting_limit", "Requests that may wait.", gate.limits.waiting),
            ("ready", "1 when requests can be answered.", service.state()[0] == "ready"),
        ):
            gauge = GaugeMetricFamily(f"qdesk_{name}", about, labels=["model_name"])
            gauge.add_metric([service.backend.model], float(value))
            yield gauge
        refused = CounterMetricFamily("qdesk_request_rejected", "Requests refused.", labels=["model_name", "reason"])
        for reason, count in service.refused.items():
            refused.add_metric([service.backend.model, reason], count)
        yield refused

        yield self._cache()
        yield from self._guesses()
        yield from self._gpus()

    def _cache(self) -> Metric:
        backend = self.service.backend
        use = backend.cache_use() if isinstance(backend, KnowsCache) else None
        about = "Share of the KV cache that running requests fill, from 0 to 1."
        gauge = GaugeMetricFamily("qdesk_kv_cache_usage_perc", about, labels=["model_name"])
        if use and use.room:
            gauge.add_metric([backend.model], use.used / use.room)
        return gauge

    def _guesses(self) -> Iterator[Metric]:
        backend = self.service.backend
        guesses = (backend.guesses() if isinstance(backend, KnowsGuesses) else None) or Guesses()
        for name, about, count in (
            ("draft_tokens", "Tokens that were guessed to follow.", guesses.guessed),
            ("accepted_tokens", "Guessed tokens that were right.", guesses.right),
        ):
            counter = CounterMetricFamily(f"qdesk_spec_decode_num_{name}", about, labels=["model_name"])
            counter.add_metric([backend.model], count)
            yield counter

    def _gpus(self) -> Iterator[Metric]:
        hardware = self.monitor.now.hardware
        memory = GaugeMetricFamily("qdesk_gpu_memory_bytes", "Memory of a GPU.", labels=["gpu", "kind"])
        busy = GaugeMetricFamily("qdesk_gpu_utilization", "Share of the time in which a GPU worked.", labels=["gpu"])
        for number, gpu in enumerate(hardware.gpus if hardware else ()):
            for kind, value in (("total", gpu.memory_total), ("used", gpu.memory_used), ("own", gpu.memory_own)):
                if value is not None:
                    memory.add_metric([str(number), kind], value)
            if gpu.utilization is not None:
                busy.add_metric([str(number)], gpu.utilization)
        yield from (memory, busy)
