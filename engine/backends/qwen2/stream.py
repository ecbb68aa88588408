"""One request inside the engine: from its prompt's tokens to the events that go back to the event loop.

Knows how an answer ends. Knows nothing of models and of other requests.
"""

import asyncio
from collections.abc import Container, Sequence
from dataclasses import dataclass, field

from engine.backends.qwen2 import scheduler
from engine.backends.qwen2.kvcache import Slot
from engine.backends.qwen2.lookup import Lookup
from engine.backends.qwen2.sampler import Chooser
from engine.backends.qwen2.tokens import TextStream
from engine.errors import EngineError
from engine.types import Delta, Done, Event, FinishReason, Logprob, Started


@dataclass(slots=True, eq=False, kw_only=True)
class Stream(scheduler.Sequence):
    """Made on the event loop, then worked on by the generation thread alone.

    `events` gets the stream's events in order and, as the last item, Done, an error, or None if it was cancelled.
    """

    prompt_tokens: int
    max_tokens: int
    ends: Container[int]  # tokens that end the answer
    next_turn: Sequence[int]  # what follows the answer, where another question does
    chooser: Chooser
    text: TextStream
    loop: asyncio.AbstractEventLoop
    events: "asyncio.Queue[Event | EngineError | None]" = field(default_factory=asyncio.Queue)
    slot: Slot | None = None
    cancelled: bool = False
    completion_tokens: int = 0
    lookup: Lookup = field(init=False)
    _unsaid: int = 0  # tokens since the last delta
    _logprobs: list[Logprob] = field(default_factory=list)  # of these tokens, where asked for

    def __post_init__(self) -> None:
        self.lookup = Lookup(self.tokens)

    @property
    def reads(self) -> bool:
        """Whether some of the prompt is still to be computed."""
        return self.computed < self.prompt_tokens

    @property
    def room(self) -> int:
        """Tokens that the answer may still have."""
        return self.max_tokens - self.completion_tokens

    @property
    def ahead(self) -> list[int]:
        """What the slot still lacks of the beginning of the next turn; nothing where there is none to come."""
        return [*self.tokens[self.computed :], *self.next_turn] if self.completion_tokens and self.next_turn else []

    def compute(self, count: int) -> None:
        """Note that the next tokens are in the cache now."""
        assert self.slot
        self.slot.tokens += self.tokens[self.computed : self.computed + count]
        self.computed += count

    def take(self, token: int) -> list[Event]:
        """Go on by one token; return what there is to tell. The last event is Done if the answer ends with it."""
        events: list[Event] = []
        if not self.completion_tokens:
            events.append(Started(self.prompt_tokens, self.cached))
        if token in self.ends:
            return [*events, *self._end("stop", self.text.rest())]
        self.tokens.append(token)
        self.chooser.note(token)
        self.completion_tokens += 1
        self._unsaid += 1
        self._note_logprob(token)
        shown = self.text.push(token)
        if self.text.stopped:
            return [*events, *self._end("stop", shown)]
        if self.completion_tokens >= self.max_tokens:
            return [*events, *self._end("length", shown + self.text.rest())]
        return [*events, *self._say(shown)]

    def _say(self, text: str) -> list[Event]:
        if not text:
            return []
        said, self._unsaid = self._unsaid, 0
        logprobs, self._logprobs = tuple(self._logprobs), []
        return [Delta(text, said, logprobs)]

    def _end(self, reason: FinishReason, text: str) -> list[Event]:
        """The last delta, also without text, so that the deltas' tokens add up to the answer's."""
        last = [Delta(text, self._unsaid, tuple(self._logprobs))] if text or self._unsaid else []
        return [*last, Done(reason, self.prompt_tokens, self.completion_tokens, self.cached)]

    def _note_logprob(self, token: int) -> None:
        if self.chooser.told is not None:
            logprob, likeliest = self.chooser.told
            top = tuple((self.text.bytes_of(other), chance) for other, chance in likeliest)
            self._logprobs.append(Logprob(self.text.bytes_of(token), logprob, top))
