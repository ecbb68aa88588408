"""The seam between the service and whatever makes the tokens.

Knows the names of the backends and nothing of how they work: each one's heavy imports happen only when it is chosen.
`tests/engine/backends/test_contract.py` holds every backend to the promises below.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from engine.settings import Settings
from engine.types import ChatRequest, Event, Message, Report


class Backend(Protocol):
    """Answers requests. Several streams run at once; each is independent of the others."""

    @property
    def model(self) -> str:
        """The name shown to people and to API clients."""

    @property
    def quantization(self) -> str:
        """`nf4`, `none`, or "" where it cannot be known."""

    @property
    def reason(self) -> str:
        """Why this model was chosen, in one sentence; "" while loading."""

    @property
    def context_tokens(self) -> int:
        """Prompt and answer together; 0 while loading."""

    @property
    def capacity(self) -> int:
        """Streams that can run at once; the gate's limit stays at or below it."""

    async def start(self, report: Report) -> None:
        """Load. `report` may be called from any thread. Raises EngineError with a sentence that says what to do."""

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """Tokens of the prompt as the model will read it; about as many where they are more than twice the context.

        Safe from any thread; blocks for milliseconds.
        """

    def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        """Started, Deltas, then exactly one Done; raises EngineError on failure. Closing the generator cancels."""

    def health(self) -> str | None:
        """None when requests can be answered, else the reason in one sentence."""

    async def stop(self) -> None:
        """End every stream and free what was loaded. Safe to call twice, and before start."""


@runtime_checkable
class ChecksRequests(Protocol):
    """What a backend may also have: looking at a request before it gets a place in the log."""

    def check(self, request: ChatRequest) -> None:
        """Raise InvalidRequest for what this backend cannot do. Safe from any thread; may block for a second."""


@dataclass(frozen=True, slots=True)
class PromptPiece:
    """A run of a prompt's text, or one control token by its name, which no text ever becomes."""

    text: str
    control: bool = False


@runtime_checkable
class KnowsTokens(Protocol):
    """What a backend may also have: its tokenizer. Safe from any thread; all block for milliseconds."""

    def tokenize(self, messages: Sequence[Message]) -> list[int]:
        """The prompt as the model will read it."""

    def detokenize(self, tokens: Sequence[int]) -> str:
        """The text of these tokens. Raises InvalidRequest for a number that is no token."""

    def pieces(self, messages: Sequence[Message]) -> list[PromptPiece]:
        """The same prompt as `tokenize` has it, to be read: its template with every control token."""


@runtime_checkable
class KnowsMemory(Protocol):
    """What a backend may also have: where the device's memory goes. 0 while nothing is loaded."""

    weights_bytes: int
    cache_bytes: int


@dataclass(frozen=True, slots=True)
class StreamLook:
    """How far a stream is: how many of its prompt's tokens are read, and where it lies in the KV cache."""

    prompt_tokens: int
    read_tokens: int  # of the prompt, those from the prefix cache included
    cached_tokens: int  # of the prompt, taken from the prefix cache
    slot: int | None  # None while it has none


@runtime_checkable
class KnowsStreams(Protocol):
    """What a backend may also have: a look at one open stream, by its request's id; None where there is none."""

    def look(self, request_id: str) -> StreamLook | None: ...


@dataclass(frozen=True, slots=True)
class CacheUse:
    """The KV cache, in tokens: of running sequences, kept of those that have ended, and all that there is room for."""

    used: int
    kept: int
    room: int
    slots_used: int
    slots: int


@runtime_checkable
class KnowsCache(Protocol):
    """What a backend may also have: how full its KV cache is; None while nothing is loaded."""

    def cache_use(self) -> CacheUse | None: ...


@dataclass(slots=True)
class Guesses:
    """Tokens that were guessed to follow, since the start, and those of them that the model would have said too."""

    guessed: int = 0
    right: int = 0

    def learn(self, guessed: int, right: int) -> None:
        self.guessed += guessed
        self.right += right


@runtime_checkable
class KnowsGuesses(Protocol):
    """What a backend may also have: what its guesses (speculative decoding) come to; None while nothing is loaded."""

    def guesses(self) -> Guesses | None: ...


@runtime_checkable
class MayBreak(Protocol):
    """What a backend may also have: an end that nothing mends but a new process."""

    async def broken(self) -> str:
        """Return the reason in one sentence when it has come to that; wait for ever where it does not."""


def create_backend(settings: Settings) -> Backend:
    """Return the backend that the settings name, not yet started."""
    match settings.backend:
        case "scripted":
            from engine.backends.scripted import ScriptedBackend

            name = "scripted" if settings.model == "auto" else settings.model
            return ScriptedBackend(context_tokens=settings.max_context_tokens, model=name)
        case "remote":
            from engine.backends.remote import RemoteBackend

            return RemoteBackend(settings)
        case "qwen2":
            from engine.backends.qwen2 import Qwen2Backend

            return Qwen2Backend(settings)
