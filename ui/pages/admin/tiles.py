"""From samples and figures to tiles: pure functions, in the reader's language. Knows nothing of elements."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from engine.backends import Backend, KnowsMemory
from engine.hardware import Gpu, Hardware
from engine.monitor import Figures, Sample, Spread
from engine.service import ChatService
from engine.types import Status
from ui.components.figures import Kind, Part, Tile
from ui.engine_words import in_words
from ui.i18n import Language

K = TypeVar("K", bound=str)

GIB = 2**30
NOTHING = "–"


def duration(say: Language, seconds: float) -> str:
    """Short enough for a table: "0.42 s", "12 s", "3 min 20 s"."""
    if seconds < 60:
        return say("{n} s", n=say.number(seconds, 0 if seconds == int(seconds) or seconds >= 20 else 2))
    minutes, seconds = divmod(round(seconds), 60)
    return say("{m} min {s} s", m=minutes, s=seconds)


def now(say: Language, sample: Sample, service: ChatService) -> list[Tile]:
    limits = service.gate.limits
    full = sample.running >= limits.concurrent and sample.waiting >= limits.waiting
    return [
        _of(say, say("Running now"), sample.running, limits.concurrent),
        _of(say, say("Waiting now"), sample.waiting, limits.waiting, full=full),
        Tile(label=say("Tokens per second"), value=say.number(sample.tokens_per_s)),
        Tile(label=say("Lag"), value=say.number(1000 * sample.lag_s), unit="ms", note=say("of the event loop")),
    ]


def last_minutes(say: Language, figures: Figures) -> list[Tile]:
    failed = figures.ended.get(Status.FAILED, 0) + figures.ended.get(Status.TIMED_OUT, 0)
    refused = sum(figures.refused.values())
    return [
        Tile(label=say("Answered"), value=say.number(figures.ended.get(Status.DONE, 0)), note=_ended(say, figures)),
        _spread(say, say("Time to first token"), figures.ttft),
        _between(say, figures.gaps),
        _spread(say, say("Queue time"), figures.queue),
        Tile(
            label=say("Errors"),
            value=say.number(failed),
            tone="bad" if failed else "",
            note=_counts(say, statuses(say), figures.ended, (Status.FAILED, Status.TIMED_OUT)),
        ),
        Tile(
            label=say("Refused"),
            value=say.number(refused),
            tone="warn" if refused else "",
            note=_counts(say, codes(say), figures.refused, tuple(sorted(figures.refused))),
        ),
    ]


def machine(say: Language, hardware: Hardware | None, backend: Backend) -> list[Tile]:
    if hardware is None:
        return [Tile(label=say("Machine"), value=say("No reading yet"), wide=True)]
    alone = len(hardware.gpus) == 1
    tiles = [tile for gpu in hardware.gpus for tile in _gpu(say, gpu, backend if alone or gpu.memory_own else None)]
    if not hardware.gpus:
        note = f"{say('No GPU: answers are computed on the CPU.')} {in_words(say, hardware.gpu_trouble)}"
        tiles.append(Tile(label=say("Processor"), value=hardware.cpu_name, note=note, wide=True))
    elif hardware.gpu_trouble:
        tiles.append(Tile(label="GPU", value=in_words(say, hardware.gpu_trouble), tone="bad", wide=True))
    others = max(0, hardware.memory_used - hardware.process_memory)
    return [
        *tiles,
        _share(say, say("CPU"), hardware.cpu_percent / 100),
        _memory(
            say, say("Memory (RAM)"), hardware.memory_total, {"Qdesk": hardware.process_memory, say("others"): others}
        ),
        Tile(label=say("This process"), value=say.number(hardware.process_memory / GIB, 1), unit="GiB"),
    ]


def _gpu(say: Language, gpu: Gpu, backend: Backend | None) -> list[Tile]:
    """`backend` is the one that may hold memory of this GPU."""
    power = say.number(gpu.power_w) if gpu.power_w is not None else NOTHING
    temperature = say.number(gpu.temperature_c) if gpu.temperature_c is not None else NOTHING
    return [
        _memory(say, gpu.name, gpu.memory_total, _gpu_memory(say, gpu, backend)),
        _share(say, say("GPU in use"), gpu.utilization),
        Tile(label=say("Temperature"), value=temperature, unit="°C"),
        Tile(label=say("Power"), value=power, unit="W"),
    ]


def _gpu_memory(say: Language, gpu: Gpu, backend: Backend | None) -> dict[str, int]:
    """By weights, cache and others, as far as the backend and the driver tell."""
    if isinstance(backend, KnowsMemory) and backend.weights_bytes:
        own = {say("weights"): backend.weights_bytes, say("cache"): backend.cache_bytes}
    else:
        own = {"Qdesk": gpu.memory_own or 0}
    return {**own, say("others"): max(0, gpu.memory_used - sum(own.values()))}


def _memory(say: Language, label: str, total: int, used: Mapping[str, int]) -> Tile:
    """`used` is in bytes, by whom; at most three."""
    gib = {name: say.number(size / GIB, 1) for name, size in used.items()}
    kinds: tuple[Kind, ...] = ("first", "second", "third")
    return Tile(
        label=label,
        value=say.number(sum(used.values()) / GIB, 1),
        unit=say("of {n} GiB", n=say.number(total / GIB, 1)),
        parts=tuple(
            Part(size / total if total else 0.0, f"{name} {gib[name]}", kind)
            for (name, size), kind in zip(used.items(), kinds[-len(used) :], strict=True)
        ),
    )


def _of(say: Language, label: str, value: int, limit: int, *, full: bool = False) -> Tile:
    share = min(1.0, value / limit) if limit else 0.0
    unit = say("of {n}", n=say.number(limit))
    return Tile(label=label, value=say.number(value), unit=unit, tone="bad" if full else "", parts=(Part(share),))


def _share(say: Language, label: str, share: float | None) -> Tile:
    if share is None:
        return Tile(label=label, value=NOTHING)
    return Tile(label=label, value=say.number(100 * share), unit="%", parts=(Part(min(1.0, share)),))


def _spread(say: Language, label: str, spread: Spread | None) -> Tile:
    if spread is None:
        return Tile(label=label, value=NOTHING, note=say("median"))
    note = say("median; 95% within {span}", span=duration(say, spread.p95_s))
    return Tile(label=label, value=duration(say, spread.median_s), note=note)


def _between(say: Language, spread: Spread | None) -> Tile:
    label = say("Time between tokens")
    if spread is None:
        return Tile(label=label, value=NOTHING, note=say("median"))
    p95 = f"{say.number(1000 * spread.p95_s)} ms"
    return Tile(
        label=label,
        value=say.number(1000 * spread.median_s),
        unit="ms",
        note=say("median; 95% within {span}", span=p95),
    )


def _ended(say: Language, figures: Figures) -> str:
    kinds = (Status.STOPPED, Status.CANCELLED, Status.DISCONNECTED)
    return _counts(say, statuses(say), figures.ended, kinds)


def _counts(say: Language, names: Mapping[str, str], counts: Mapping[K, int], kinds: Sequence[K]) -> str:
    """ "3 stopped, 1 cancelled"; "" where nothing of these kinds has happened."""
    return say(", ").join(f"{say.number(counts[kind])} {names.get(kind, kind)}" for kind in kinds if counts.get(kind))


def statuses(say: Language) -> dict[str, str]:
    return {
        Status.STOPPED: say("stopped"),
        Status.CANCELLED: say("cancelled"),
        Status.DISCONNECTED: say("left"),
        Status.FAILED: say("failed"),
        Status.TIMED_OUT: say("timed out"),
    }


def codes(say: Language) -> dict[str, str]:
    """Why requests are refused, by the error's code."""
    return {
        "queue_full": say("queue full"),
        "user_limit": say("person's limit"),
        "context_length_exceeded": say("too long"),
        "model_loading": say("loading"),
        "engine_failed": say("engine failed"),
        "engine_error": say("engine failed"),
        "paused": say("paused"),
        "draining": say("draining"),
        "log_failed": say("log failed"),
        "invalid_request": say("invalid"),
    }
