"""From spans to charts: pure functions, in the reader's language."""

from collections.abc import Callable, Mapping, Sequence

from engine.sketch import Sketch
from engine.spans import Span
from engine.types import Status
from ui.components.timeline import Chart, Series, Tone
from ui.i18n import Language
from ui.pages.admin.tiles import GIB, codes, statuses

FAILURES = (str(Status.FAILED), str(Status.TIMED_OUT), str(Status.INTERRUPTED))
KINDS: tuple[Tone, ...] = ("bad", "warn", "third", "first", "fourth", "fifth", "second", "sixth")

Spans = Sequence[Span | None]


def charts(say: Language, spans: Spans) -> list[Chart]:
    return [
        Chart(
            title=say("Requests"),
            kind="stack",
            series=[
                Series(say("running"), "first", _values(spans, lambda span: span.running)),
                Series(say("waiting"), "warn", _values(spans, lambda span: span.waiting)),
            ],
        ),
        Chart(
            title=say("Throughput"),
            unit=say("tokens/s"),
            kind="stack",
            series=[Series(say("tokens/s"), "first", _values(spans, _speed))],
        ),
        _durations(say, say("Time to first token"), "s", spans, lambda span: span.ttft),
        _durations(say, say("Time between tokens"), "ms", spans, lambda span: span.gaps),
        _durations(say, say("Queue time"), "s", spans, lambda span: span.queue),
        _troubles(say, spans),
        Chart(title=say("Memory"), unit="GiB", series=_memory(say, spans)),
        Chart(title=say("Utilisation"), unit="%", series=_utilisation(say, spans), top=100),
    ]


def _durations(say: Language, title: str, unit: str, spans: Spans, of: Callable[[Span], Sketch]) -> Chart:
    scale = 1000 if unit == "ms" else 1

    def percentile(share: float) -> list[float | None]:
        found = _values(spans, lambda span: of(span).percentile(share))
        return [None if value is None else _rounded(value * scale) for value in found]

    return Chart(
        title=title,
        unit=unit,
        series=[
            Series(say("median"), "first", percentile(0.5)),
            Series(say("95th percentile"), "warn", percentile(0.95)),
        ],
    )


def _troubles(say: Language, spans: Spans) -> Chart:
    """Failures and refusals by kind: those kinds that there were."""
    names = {**statuses(say), **codes(say)}
    kinds = [kind for kind in FAILURES if any(span and span.ended.get(kind) for span in spans)]
    refused = sorted({code for span in spans if span for code in span.refused})
    series = [_counts(names, kind, spans, lambda span: span.ended) for kind in kinds]
    series += [_counts(names, code, spans, lambda span: span.refused) for code in refused]
    series = series or [Series(say("failed"), "bad", _values(spans, lambda span: 0.0))]
    toned = [Series(each.label, KINDS[place % len(KINDS)], each.values) for place, each in enumerate(_by_label(series))]
    return Chart(title=say("Refused and failed"), kind="stack", series=toned)


def _counts(names: Mapping[str, str], kind: str, spans: Spans, of: Callable[[Span], Mapping[str, int]]) -> Series:
    return Series(names.get(kind, kind), "bad", _values(spans, lambda span: float(of(span).get(kind, 0))))


def _by_label(series: Sequence[Series]) -> list[Series]:
    """Kinds that are called the same are one."""
    found: dict[str, Series] = {}
    for each in series:
        if before := found.get(each.label):
            added = [None if a is None else a + (b or 0) for a, b in zip(before.values, each.values, strict=True)]
            found[each.label] = Series(each.label, each.tone, added)
        else:
            found[each.label] = each
    return list(found.values())


def _memory(say: Language, spans: Spans) -> list[Series]:
    own = Series("Qdesk", "first", _values(spans, lambda span: _gib(span.memory)))
    gpu = Series("GPU", "warn", _values(spans, lambda span: _gib(span.gpu_memory)))
    return [own, gpu] if any(value is not None for value in gpu.values) else [own]


def _utilisation(say: Language, spans: Spans) -> list[Series]:
    cpu = Series(say("CPU"), "first", _values(spans, lambda span: _percent(span.cpu)))
    gpu = Series("GPU", "warn", _values(spans, lambda span: _percent(span.gpu)))
    return [cpu, gpu] if any(value is not None for value in gpu.values) else [cpu]


def _values(spans: Spans, of: Callable[[Span], float | None]) -> list[float | None]:
    return [None if span is None or (value := of(span)) is None else _rounded(value) for span in spans]


def _speed(span: Span) -> float:
    return span.tokens / span.seconds if span.seconds else 0.0


def _gib(size: int | None) -> float | None:
    return None if size is None else size / GIB


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _rounded(value: float) -> float:
    """Four digits: what a chart shows, and no more to send."""
    return float(f"{value:.4g}")
