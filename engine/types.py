"""The messages that travel between faces, service, backends and the record: small frozen dataclasses, never dicts.

Knows nothing of queues, models, HTTP or SQL. Times are aware UTC datetimes; durations are seconds.
"""

import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from engine.errors import InvalidRequest

Role = Literal["system", "user", "assistant", "text"]  # a lone "text" is no conversation, but to be continued as it is
Source = Literal["page", "api", "import", "review"]  # import: brought from a file; review: a reviewer runs it again
FinishReason = Literal["stop", "length"]


class Status(StrEnum):
    """Where an exchange stands. Everything but QUEUED and RUNNING is final."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"  # the model came to an end, or to max_tokens
    STOPPED = "stopped"  # the person pressed Stop
    CANCELLED = "cancelled"  # left the queue, or was cancelled by an administrator or by API
    DISCONNECTED = "disconnected"  # nobody was there to read it any more
    TIMED_OUT = "timed_out"
    FAILED = "failed"
    INTERRUPTED = "interrupted"  # the server went down

    @property
    def final(self) -> bool:
        return self not in (Status.QUEUED, Status.RUNNING)


def new_id() -> str:
    """An identifier that nobody can guess: 32 hexadecimal digits."""
    return uuid.uuid4().hex


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


def asked(messages: Sequence[Message]) -> str:
    """What was asked: the text of the last message that is not the beginning of the answer."""
    return next((one.content for one in reversed(messages) if one.role != "assistant"), messages[-1].content)


def opening(messages: Sequence[Message]) -> str:
    """The beginning of the answer, with which messages that end with the assistant's ask to go on; else ""."""
    return messages[-1].content if messages[-1].role == "assistant" else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How the next token is drawn. Raises InvalidRequest for a value outside its range, naming it."""

    temperature: float = 0.7  # 0 = greedy, at most 2
    top_p: float = 0.8  # in (0, 1]
    top_k: int = 20  # 0 = off
    repetition_penalty: float = 1.05  # 1 = off, in (0, 2]
    seed: int | None = None
    stop: tuple[str, ...] = ()  # at most 8 strings of at most 200 characters; never part of the answer
    max_tokens: int | None = None  # None = as many as the server allows
    ignore_eos: bool = False  # keep going at the end-of-turn token; for benchmarks
    frequency_penalty: float = 0.0  # off the logit for each time that the answer has the token; -2 to 2
    presence_penalty: float = 0.0  # off the logit if the answer has the token at all; -2 to 2
    logprobs: int | None = None  # tell each token's probability, with so many alternatives (0 to 20); None = do not
    json_schema: str | None = None  # the answer is JSON that this schema describes

    def __post_init__(self) -> None:
        _within("temperature", self.temperature, 0 <= self.temperature <= 2, "from 0 to 2")
        _within("top_p", self.top_p, 0 < self.top_p <= 1, "above 0 and at most 1")
        _within("top_k", self.top_k, 0 <= self.top_k <= 1_000_000, "0 (off) or more")
        _within(
            "repetition_penalty", self.repetition_penalty, 0 < self.repetition_penalty <= 2, "above 0 and at most 2"
        )
        for name in ("frequency_penalty", "presence_penalty"):
            value = getattr(self, name)
            _within(name, value, -2 <= value <= 2, "from -2 to 2")
        if self.logprobs is not None:
            _within("top_logprobs", self.logprobs, 0 <= self.logprobs <= 20, "from 0 to 20")
        if self.json_schema is not None and self.ignore_eos:
            raise InvalidRequest("ignore_eos and response_format exclude each other.", param="ignore_eos")
        if self.seed is not None:
            _within("seed", self.seed, -(2**63) <= self.seed < 2**63, "a 64-bit integer")
        if self.max_tokens is not None:
            _within("max_tokens", self.max_tokens, self.max_tokens >= 1, "1 or more")
        if len(self.stop) > 8 or any(not text or len(text) > 200 for text in self.stop):
            raise InvalidRequest("stop takes at most 8 strings of 1 to 200 characters.", param="stop")


def _within(name: str, value: float, good: bool, allowed: str) -> None:
    if not good or (isinstance(value, float) and not math.isfinite(value)):  # an int may be too large for a float
        raise InvalidRequest(f"{name} is {value}; it must be {allowed}.", param=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One question with all that is needed to answer it.

    `person` is the id of the account that asks and is what fairness and the per-person limit go by; None is the
    operator's fixed key, which only the gate as a whole bounds.

    Messages that end with the assistant's hold the beginning of the answer: it is gone on with where it stops, and what
    comes is the new text alone.
    """

    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    person: str | None
    source: Source
    conversation_id: str | None = None
    parent_id: str | None = None  # the exchange before this one in its tree; in a review, the one that is run again
    id: str = field(default_factory=new_id)
    end_user: str = ""  # whom a program asks for, as it names them
    metadata: tuple[tuple[str, str], ...] = ()  # what a program wants to find again in the log
    outlives: bool = False  # goes on for a while when its program has gone away, as it does for a page

    def __post_init__(self) -> None:
        if not self.messages:
            raise InvalidRequest("messages is empty; send at least one.", param="messages")
        if not self.prompt.strip():
            raise InvalidRequest("The prompt is empty.", param="messages")

    @property
    def prompt(self) -> str:
        return asked(self.messages)


@dataclass(frozen=True, slots=True)
class Started:
    """The backend has read the prompt; tokens follow."""

    prompt_tokens: int
    cached_tokens: int = 0  # of these, read from the prefix cache


@dataclass(frozen=True, slots=True)
class Logprob:
    """One token as the model saw it, before sampling values and schema: natural logarithms of probabilities."""

    token: bytes
    logprob: float
    top: tuple[tuple[bytes, float], ...] = ()  # the likeliest tokens at this place, falling


@dataclass(frozen=True, slots=True)
class Delta:
    """The next piece of the answer: whole characters only. `tokens` is how many tokens it took (0 if unknown)."""

    text: str
    tokens: int = 1
    logprobs: tuple[Logprob, ...] = ()  # of these tokens, where asked for


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of every stream that did not fail."""

    finish_reason: FinishReason
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0


Event = Started | Delta | Done


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long piece of work is. `total` 0 means that it cannot be known."""

    stage: str  # a short present participle phrase: "downloading", "quantising", "warming up"
    done: int = 0
    total: int = 0
    unit: Literal["bytes", "steps"] = "steps"


Report = Callable[[Progress], None]
WARMING_UP = "warming up"  # the last stage of loading, whose time is told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """What is recorded of one prompt and its answer: a snapshot, written again whenever it has moved on."""

    id: str
    person: str | None
    source: Source
    conversation_id: str | None
    parent_id: str | None
    messages: tuple[Message, ...]
    answer: str
    status: Status
    finish_reason: FinishReason | None
    error: str | None
    model: str
    quantization: str
    sampling: Sampling
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    queue_depth: int  # requests running and waiting when this one arrived
    queued_at: datetime
    started_at: datetime | None
    first_token_at: datetime | None
    finished_at: datetime | None
    end_user: str = ""
    request_metadata: tuple[tuple[str, str], ...] = ()

    @property
    def prompt(self) -> str:
        return asked(self.messages)

    @property
    def opening(self) -> str:
        """What an earlier exchange answered, and this one goes on with; "" for most."""
        return opening(self.messages)

    @property
    def whole_answer(self) -> str:
        return self.opening + self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeFilter:
    """Every field that is set must match. Each word of `text` must be in prompt or answer; one character is enough."""

    person: str | None = None  # user id; "" is the operator's fixed key, which is nobody's
    since: datetime | None = None  # asked then or later
    until: datetime | None = None  # asked before
    status: Status | None = None
    source: Source | None = None
    text: str = ""
    model: str | None = None
    rating: Literal[1, -1] | None = None  # what the person thought of the answer
    label: str | None = None  # one that reviewers gave
    assignee: str | None = None  # user id of the reviewer who is to look at it and has not done so yet
    reviewed: bool | None = None  # whether a reviewer is done with it; reruns need no review and are neither
    cut_off: bool = False  # only what did not come to an end of its own: failed, ended, or at the token limit
    long_wait: bool = False  # only what waited 10 seconds or longer for its turn
