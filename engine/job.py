"""One request on its way through the server, and everything that faces may watch of it.

A job belongs to the server, not to a page: any number of followers come and go, and each sees the whole answer. Knows
nothing of the gate or of backends; `engine/service.py` moves it along. Lives on the event loop alone.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from engine.errors import EngineError
from engine.sketch import Sketch
from engine.types import ChatRequest, Delta, Done, Event, Exchange, FinishReason, Logprob, Started, Status


@dataclass(frozen=True, slots=True)
class Update:
    """What a follower is told: where the job stands, and the pieces of the answer since it last looked."""

    seq: int  # number of deltas so far; follow(after=seq) goes on from here
    deltas: tuple[str, ...]
    status: Status
    position: int | None = None  # waiting: 0 is next
    expected_wait_s: float | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    finish_reason: FinishReason | None = None
    error: EngineError | None = None
    logprobs: tuple[tuple[Logprob, ...], ...] = ()  # by delta, where asked for

    @property
    def text(self) -> str:
        return "".join(self.deltas)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The figures of one finished request, without a word of its text. Seconds; `ended_s` is time.monotonic()."""

    ended_s: float
    status: Status
    queue_s: float
    ttft_s: float | None
    total_s: float
    completion_tokens: int
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of these, read from the prefix cache
    finish_reason: FinishReason | None = None
    gaps: Sketch = field(default_factory=Sketch)  # between tokens
    error: str = ""  # the code of what it ended with, if that was an error


class Job:
    def __init__(self, request: ChatRequest, *, model: str, quantization: str, queue_depth: int) -> None:
        self.request = request
        self.id = request.id
        self.model, self.quantization, self.queue_depth = model, quantization, queue_depth
        self.status = Status.QUEUED
        self.deltas: list[str] = []
        self.logprobs: list[tuple[Logprob, ...]] = []  # by delta
        self.prompt_tokens = self.cached_tokens = self.completion_tokens = 0
        self.finish_reason: FinishReason | None = None
        self.error: EngineError | None = None
        self.position: int | None = None
        self.expected_wait_s: float | None = None
        self.queued_at = datetime.now(UTC)
        self.started_s: float | None = None  # these three: seconds after queued_at, by the monotonic clock
        self.first_token_s: float | None = None
        self.finished_s: float | None = None
        self.on_watched: Callable[[bool], None] | None = None  # told when the first follower comes and the last goes
        self.gaps = Sketch()  # seconds between tokens
        self._origin_s = time.monotonic()
        self._told_s = 0.0  # age at the last delta
        self._followers: set[asyncio.Event] = set()
        self._readers = 0
        self._closed = asyncio.Event()

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._origin_s

    @property
    def text(self) -> str:
        return "".join(self.deltas)

    @property
    def followers(self) -> int:
        return len(self._followers)

    @property
    def readers(self) -> int:
        """Followers that show the answer to somebody."""
        return self._readers

    @property
    def tokens_per_s(self) -> float:
        """Speed from the first token on; 0 before the second."""
        if self.first_token_s is None or self.completion_tokens < 2:
            return 0.0
        seconds = (self.finished_s or self.age_s) - self.first_token_s
        return (self.completion_tokens - 1) / seconds if seconds > 0 else 0.0

    async def follow(self, after: int = 0, *, reading: bool = True) -> AsyncGenerator[Update, None]:
        """Yield what there is beyond delta `after`, at once, then whatever comes; the last update's status is final.

        `reading` False: this follower shows the answer to nobody, and minds only how the job stands.

        A slow follower gets several deltas in one update and holds nobody up. Close the generator to stop watching.
        """
        wake = asyncio.Event()
        self._followers.add(wake)
        self._readers += reading
        self._watched(len(self._followers) == 1, True)
        try:
            while True:
                wake.clear()
                update = self.update(after)
                after = update.seq
                yield update
                if update.status.final:
                    return
                await wake.wait()
        finally:
            self._followers.discard(wake)
            self._readers -= reading
            self._watched(not self._followers, False)

    def update(self, after: int = 0) -> Update:
        """Where the job stands now, with the deltas beyond `after`."""
        return Update(
            seq=len(self.deltas),
            deltas=tuple(self.deltas[after:]),
            status=self.status,
            position=self.position,
            expected_wait_s=self.expected_wait_s,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            finish_reason=self.finish_reason,
            error=self.error,
            logprobs=tuple(self.logprobs[after:]) if self.request.sampling.logprobs is not None else (),
        )

    async def closed(self) -> None:
        """Return once the job is final, its place is free and its row is written."""
        await self._closed.wait()

    def read_elsewhere(self) -> None:
        """Somebody reads it whom this process cannot see, and who says so again and again."""
        if not self._followers:
            self._watched(True, False)  # it is left alone from now on, not since before

    # What follows is for the service.

    def wait_at(self, position: int, expected_wait_s: float | None) -> None:
        if (position, expected_wait_s) != (self.position, self.expected_wait_s):
            self.position, self.expected_wait_s = position, expected_wait_s
            self._notify()

    def put_to(self, request: ChatRequest, *, model: str, quantization: str) -> None:
        """Another model than the one it waited for answers it, and this is the request as it fits there."""
        self.request, self.model, self.quantization = request, model, quantization

    def run(self) -> None:
        self.status, self.started_s = Status.RUNNING, self.age_s
        self.position = self.expected_wait_s = None
        self._notify()

    def take(self, event: Event) -> None:
        match event:
            case Started(prompt_tokens, cached_tokens):
                self.prompt_tokens, self.cached_tokens = prompt_tokens, cached_tokens
            case Delta(text, tokens, logprobs):
                now_s = self.age_s
                if self.first_token_s is None:
                    self.first_token_s = now_s
                elif tokens:
                    self.gaps.add((now_s - self._told_s) / tokens, tokens)
                self._told_s = now_s
                self.completion_tokens += tokens
                if text or logprobs:
                    self.deltas.append(text)
                    self.logprobs.append(logprobs)
            case Done():
                self.finish_reason = event.finish_reason
                self.prompt_tokens, self.cached_tokens = event.prompt_tokens, event.cached_tokens
                self.completion_tokens = event.completion_tokens
                return  # the service closes the job, and followers hear of it then
        self._notify()

    def finish(self, status: Status, error: EngineError | None) -> Exchange:
        """Settle how the job ended and return its final row; followers are told by `close`."""
        self.finished_s, self.error = self.age_s, error
        return self.exchange(status)

    def close(self, status: Status) -> None:
        self.status = status
        self.position = self.expected_wait_s = None
        self._closed.set()
        self._notify()

    def exchange(self, status: Status | None = None) -> Exchange:
        """The row of this job as it stands now."""

        def at(seconds: float | None) -> datetime | None:
            return None if seconds is None else self.queued_at + timedelta(seconds=seconds)

        return Exchange(
            id=self.id,
            person=self.request.person,
            source=self.request.source,
            conversation_id=self.request.conversation_id,
            parent_id=self.request.parent_id,
            messages=self.request.messages,
            answer=self.text,
            status=status or self.status,
            finish_reason=self.finish_reason,
            error=str(self.error) if self.error else None,
            model=self.model,
            quantization=self.quantization,
            sampling=self.request.sampling,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            queue_depth=self.queue_depth,
            queued_at=self.queued_at,
            started_at=at(self.started_s),
            first_token_at=at(self.first_token_s),
            finished_at=at(self.finished_s),
            end_user=self.request.end_user,
            request_metadata=self.request.metadata,
        )

    def outcome(self, status: Status) -> Outcome:
        return Outcome(
            ended_s=time.monotonic(),
            status=status,
            queue_s=self.started_s if self.started_s is not None else self.age_s,
            ttft_s=self.first_token_s,
            total_s=self.age_s,
            completion_tokens=self.completion_tokens,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            finish_reason=self.finish_reason,
            gaps=self.gaps,
            error=self.error.code if self.error else "",
        )

    def _notify(self) -> None:
        for wake in self._followers:
            wake.set()

    def _watched(self, changed: bool, watched: bool) -> None:
        if changed and self.on_watched:
            self.on_watched(watched)
