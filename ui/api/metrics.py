"""GET /metrics for Prometheus: for administrators and the operator's key, because load tells about people.

Names follow vLLM's, with the prefix qdesk_; seconds; the label is the model, never a person.
"""

from collections.abc import Iterator

from nicegui import app
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from starlette.requests import Request
from starlette.responses import Response

from engine.job import Outcome
from engine.service import ChatService
from engine.types import Status
from ui.api.errors import ApiError
from ui.desk import Desk

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600)
PER_TOKEN = (0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 1)
ABORTED = {
    Status.STOPPED: "user",
    Status.CANCELLED: "cancel",
    Status.DISCONNECTED: "disconnect",
    Status.TIMED_OUT: "timeout",
    Status.INTERRUPTED: "shutdown",
}


def register(desk: Desk) -> None:
    figures = Figures(desk.service)

    @app.get("/metrics", tags=["operations"])
    async def metrics(request: Request) -> Response:
        """Figures for Prometheus; needs the operator's key, or a key or session of an administrator."""
        if not request.state.caller.admin:
            raise ApiError(403, "Only administrators may read the metrics.", code="forbidden")
        return Response(figures.page(), media_type=CONTENT_TYPE_LATEST)


class Figures:
    """Gauges are read from the service when asked for; what has ended is counted from its list of outcomes."""

    def __init__(self, service: ChatService) -> None:
        self.service = service
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._counted_s = 0.0  # outcomes up to this moment of the monotonic clock are counted
        self.queue = self._histogram("request_queue_time_seconds", "From asking to running.", SECONDS)
        self.first = self._histogram("time_to_first_token_seconds", "From asking to the first token.", SECONDS)
        self.whole = self._histogram("e2e_request_latency_seconds", "From asking to the end.", SECONDS)
        self.between = self._histogram("inter_token_latency_seconds", "Mean time between tokens.", PER_TOKEN)
        self.done = self._counter("request_success", "Requests that came to their own end.")
        self.failed = self._counter("request_failure", "Requests that the engine failed at.")
        self.aborted = self._counter("request_aborted", "Requests that were ended from outside.", "by")

    def _histogram(self, name: str, about: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"qdesk_{name}", about, ["model_name"], buckets=buckets, registry=self.registry)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"qdesk_{name}", about, ["model_name", *labels], registry=self.registry)

    def page(self) -> bytes:
        self.count()
        return generate_latest(self.registry)

    def count(self) -> None:
        """Take in what has ended since the last time."""
        new = []
        for outcome in reversed(self.service.recent):
            if outcome.ended_s <= self._counted_s:
                break
            new.append(outcome)
        for outcome in new:
            self._count(outcome)
        self._counted_s = max((outcome.ended_s for outcome in new), default=self._counted_s)

    def collect(self) -> Iterator[Metric]:
        service, gate = self.service, self.service.gate
        for name, about, value in (
            ("requests_running", "Requests that run.", len(gate.running)),
            ("requests_waiting", "Requests that wait.", gate.waiting),
            ("requests_running_limit", "Requests that may run at once.", gate.limits.concurrent),
            ("requests_waiting_limit", "Requests that may wait.", gate.limits.waiting),
            ("ready", "1 when requests can be answered.", service.state()[0] == "ready"),
        ):
            gauge = GaugeMetricFamily(f"qdesk_{name}", about, labels=["model_name"])
            gauge.add_metric([service.backend.model], float(value))
            yield gauge
        tokens = CounterMetricFamily("qdesk_generation_tokens", "Tokens generated.", labels=["model_name"])
        tokens.add_metric([service.backend.model], service.generated_tokens)
        yield tokens
        refused = CounterMetricFamily("qdesk_request_rejected", "Requests refused.", labels=["model_name", "reason"])
        for reason, count in service.refused.items():
            refused.add_metric([service.backend.model, reason], count)
        yield refused

    def _count(self, outcome: Outcome) -> None:
        model = self.service.backend.model
        self.queue.labels(model).observe(outcome.queue_s)
        self.whole.labels(model).observe(outcome.total_s)
        if outcome.ttft_s is not None:
            self.first.labels(model).observe(outcome.ttft_s)
            if outcome.completion_tokens > 1:
                self.between.labels(model).observe((outcome.total_s - outcome.ttft_s) / (outcome.completion_tokens - 1))
        match outcome.status:
            case Status.DONE:
                self.done.labels(model).inc()
            case Status.FAILED:
                self.failed.labels(model).inc()
            case status:
                self.aborted.labels(model, ABORTED[status]).inc()
