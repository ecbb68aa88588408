"""The numbers of one exchange, as groups of names and values in the reader's language.

Knows nothing of pages. Seconds are differences of the recorded times; a number that was never reached is left out.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import TypedDict

from engine.types import Exchange, Source, Status
from ui.i18n import Language


class Fact(TypedDict):
    name: str
    value: str


class Facts(TypedDict):
    title: str
    facts: list[Fact]


def status_name(status: Status, say: Language) -> str:
    match status:
        case Status.QUEUED:
            return say("Waiting")
        case Status.RUNNING:
            return say("Running")
        case Status.DONE:
            return say("Done")
        case Status.STOPPED:
            return say("Stopped")
        case Status.CANCELLED:
            return say("Cancelled")
        case Status.DISCONNECTED:
            return say("Disconnected")
        case Status.TIMED_OUT:
            return say("Timed out")
        case Status.FAILED:
            return say("Failed")
        case Status.INTERRUPTED:
            return say("Interrupted")


def source_name(source: Source, say: Language) -> str:
    names = {
        "page": say("Chat page"),
        "api": say("Program (API)"),
        "import": say("Imported, not answered here"),
        "review": say("Run again in review"),
    }
    return names[source]


def seconds(start: datetime | None, end: datetime | None) -> float | None:
    return (end - start).total_seconds() if start and end else None


def tokens_per_s(exchange: Exchange) -> float | None:
    """Speed from the first token to the last; None where there are fewer than two tokens."""
    took = seconds(exchange.first_token_at, exchange.finished_at)
    return (exchange.completion_tokens - 1) / took if took and exchange.completion_tokens > 1 else None


def summary(exchange: Exchange, say: Language) -> list[str]:
    """The few numbers that one reads first."""
    queue, first_token, total = _durations(exchange, say)
    parts = [
        say("{time} in the queue", time=queue) if queue else "",
        say("{time} to the first token", time=first_token) if first_token else "",
        say("{n} tokens", n=say.number(exchange.completion_tokens)) if exchange.completion_tokens else "",
        _speed(exchange, say),
        say("{time} in all", time=total) if total else "",
    ]
    return [part for part in parts if part]


def facts(exchange: Exchange, say: Language) -> list[Facts]:
    """Everything that is known of how the answer came about."""
    groups = {
        say("Outcome"): _outcome(exchange, say),
        say("Time"): _times(exchange, say),
        say("Tokens"): _tokens(exchange, say),
        say("Model"): _model(exchange, say),
        say("Sampling"): _sampling(exchange, say),
        say("Metadata of the program"): iter(exchange.request_metadata),
    }
    known = {title: [Fact(name=name, value=value) for name, value in group if value] for title, group in groups.items()}
    return [Facts(title=title, facts=group) for title, group in known.items() if group]


def _outcome(exchange: Exchange, say: Language) -> Iterator[tuple[str, str]]:
    yield say("Status"), status_name(exchange.status, say)
    yield say("Finish reason"), exchange.finish_reason or ""
    yield say("Source"), source_name(exchange.source, say)
    yield say("End user"), exchange.end_user
    yield say("Exchange id"), exchange.id


def _times(exchange: Exchange, say: Language) -> Iterator[tuple[str, str]]:
    queue, first_token, total = _durations(exchange, say)
    yield say("Queue wait"), queue
    yield say("Time to first token"), first_token
    yield say("Total time"), total
    yield say("Speed"), _speed(exchange, say)
    yield say("Queue depth on arrival"), say.number(exchange.queue_depth)


def _tokens(exchange: Exchange, say: Language) -> Iterator[tuple[str, str]]:
    yield say("Prompt tokens"), say.number(exchange.prompt_tokens)
    yield say("From the prefix cache"), say.number(exchange.cached_tokens)
    yield say("Completion tokens"), say.number(exchange.completion_tokens)


def _model(exchange: Exchange, say: Language) -> Iterator[tuple[str, str]]:
    yield say("Model name"), exchange.model
    yield say("Quantisation"), exchange.quantization


def _sampling(exchange: Exchange, say: Language) -> Iterator[tuple[str, str]]:
    sampling = exchange.sampling
    yield say("Temperature"), say.number(sampling.temperature, 2)
    yield "top_p", say.number(sampling.top_p, 3)
    yield "top_k", say.number(sampling.top_k)
    yield say("Repetition penalty"), say.number(sampling.repetition_penalty, 3)
    yield say("Frequency penalty"), say.number(sampling.frequency_penalty, 2) if sampling.frequency_penalty else ""
    yield say("Presence penalty"), say.number(sampling.presence_penalty, 2) if sampling.presence_penalty else ""
    yield say("Seed"), "" if sampling.seed is None else str(sampling.seed)
    yield say("Most tokens"), "" if sampling.max_tokens is None else say.number(sampling.max_tokens)
    yield say("Stop strings"), " ".join(repr(text) for text in sampling.stop)
    yield say("JSON schema"), sampling.json_schema or ""
    yield say("Past the end token"), say("yes") if sampling.ignore_eos else ""


def duration(value: float | None, say: Language) -> str:
    """Seconds with as many digits as they deserve; minutes from two on. "" for None."""
    if value is None:
        return ""
    if value >= 120:
        return say("{minutes} min {seconds} s", minutes=say.number(value // 60), seconds=say.number(value % 60))
    return say("{n} s", n=say.number(value, 2 if value < 10 else 1))


def _durations(exchange: Exchange, say: Language) -> tuple[str, str, str]:
    """Queue wait, time to first token and total time, each from the moment of asking."""
    ends = (exchange.started_at, exchange.first_token_at, exchange.finished_at)
    queue, first_token, total = (duration(seconds(exchange.queued_at, end), say) for end in ends)
    return queue, first_token, total


def _speed(exchange: Exchange, say: Language) -> str:
    speed = tokens_per_s(exchange)
    return "" if speed is None else say("{n} tokens/s", n=say.number(speed, 1))
