"""A backend that plays a script: pages, API and service are tested and shown without a model.

The answer is chosen by the prompt: with `SCRIPT` lines added by a test, or by a phrase that anybody can type
(`DEMO` below), else the prompt is echoed. An answer that is gone on with continues where it stopped. `history` keeps
every request. Knows no tokenizer: a word is a token.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence

from engine.backends import CacheUse, PromptPiece, StreamLook
from engine.errors import BackendFailed, InvalidRequest
from engine.titles import WISH
from engine.types import (
    ChatRequest,
    Delta,
    Done,
    Event,
    FinishReason,
    Logprob,
    Message,
    Progress,
    Report,
    Started,
    opening,
)

SLOWLY = "read slowly"
DEMO = {
    "fail before": "",
    "fail midway": "This answer breaks off",
    SLOWLY: "I have read it all.",
    "stand still": "",
    "long": " ".join(f"word{i}" for i in range(2000)),
}
MISSING = "missing"  # the name of a model that cannot be loaded


class ScriptedBackend:
    """Says `answers[prompt]`, one word every `pause_s` seconds; `hold()` makes every stream wait until `go()`."""

    def __init__(self, *, context_tokens: int = 4096, pause_s: float = 0.02, model: str = "scripted") -> None:
        self.model, self.quantization, self.reason = model, "", "A script plays the model."
        self.context_tokens, self.capacity = context_tokens, 256
        self.pause_s = pause_s
        self.answers: dict[str, str] = {}
        self.history: list[ChatRequest] = []
        self.active: Counter[str] = Counter()  # streams that are open, by request id
        self.looks: dict[str, StreamLook] = {}  # of open streams, by request id
        self.trouble: str | None = None
        self._numbers: dict[str, int] = {}  # of the words that were tokenised
        self._going = asyncio.Event()
        self._going.set()

    async def start(self, report: Report) -> None:
        if self.model == MISSING:
            raise BackendFailed("There is no such script.")
        report(Progress("reading the script", 1, 1))

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(_words(message.content)) for message in messages)

    def tokenize(self, messages: Sequence[Message]) -> list[int]:
        words = [word for message in messages for word in _words(message.content)]
        return [self._numbers.setdefault(word, len(self._numbers)) for word in words]

    def detokenize(self, tokens: Sequence[int]) -> str:
        known = list(self._numbers)
        if any(not 0 <= token < len(known) for token in tokens):
            raise InvalidRequest("There is no token of such a number.", param="tokens")
        return "".join(known[token] for token in tokens)

    def pieces(self, messages: Sequence[Message]) -> list[PromptPiece]:
        """A template of its own: a role before each message."""
        told = [(PromptPiece(f"<|{one.role}|>", control=True), PromptPiece(one.content)) for one in messages]
        return [piece for pair in told for piece in pair]

    def check(self, request: ChatRequest) -> None:
        if request.sampling.json_schema is not None:
            raise InvalidRequest("A script cannot keep to a schema; use a model.", param="response_format")

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        self.history.append(request)
        self.active[request.id] += 1
        try:
            await self._going.wait()
            prompt_tokens = self.count_tokens(request.messages)
            await self._read(request, prompt_tokens)
            if "fail before" in request.prompt:
                raise BackendFailed("The script says to fail before the first token.")
            yield Started(prompt_tokens)
            count = 0
            reason: FinishReason = "stop"
            for count, word in enumerate(self._answer(request), start=1):
                if count > (request.sampling.max_tokens or self.context_tokens):
                    count, reason = count - 1, "length"
                    break
                await asyncio.sleep(self.pause_s)
                await self._going.wait()
                yield Delta(word, logprobs=_certain(word, request.sampling.logprobs))
            if "fail midway" in request.prompt and not opening(request.messages):
                raise BackendFailed("The script says to fail midway.")
            yield Done(reason, prompt_tokens, count)
        finally:
            del self.active[request.id]
            self.looks.pop(request.id, None)

    async def _read(self, request: ChatRequest, tokens: int) -> None:
        """The prompt is there at once, unless it asks to be read slowly: a token every `pause_s`.

        Those two words are in the cache then.
        """
        slot = min(set(range(len(self.looks) + 1)) - {look.slot for look in self.looks.values()})
        slowly = request.prompt.startswith(SLOWLY)
        cached = len(_words(SLOWLY)) if slowly else 0
        self.looks[request.id] = StreamLook(tokens, tokens, cached, slot)
        for read in range(cached, tokens if slowly else 0):
            self.looks[request.id] = StreamLook(tokens, read, cached, slot)
            await asyncio.sleep(self.pause_s)
            await self._going.wait()
        self.looks[request.id] = StreamLook(tokens, tokens, cached, slot)
        if request.prompt.startswith("stand still"):
            await asyncio.Event().wait()

    def look(self, request_id: str) -> StreamLook | None:
        return self.looks.get(request_id)

    def cache_use(self) -> CacheUse | None:
        used = sum(look.read_tokens for look in self.looks.values())
        return CacheUse(used, 0, self.capacity * self.context_tokens, len(self.looks), self.capacity)

    def health(self) -> str | None:
        return self.trouble

    async def stop(self) -> None:
        self._going.set()

    def hold(self) -> None:
        self._going.clear()

    def go(self) -> None:
        self._going.set()

    def _answer(self, request: ChatRequest) -> Iterator[str]:
        if request.prompt == WISH:  # a title as the first question demands it, else none
            demanded = re.search(r"^title: (.+)", request.messages[-3].content, re.MULTILINE)
            return iter(_words(demanded[1] if demanded else ""))
        scripted = next((text for phrase, text in DEMO.items() if request.prompt.startswith(phrase)), None)
        text = self.answers.get(request.prompt, scripted if scripted is not None else f"You said: {request.prompt}")
        if begun := opening(request.messages):
            text = text.removeprefix(begun) if text != begun and text.startswith(begun) else " and goes on."
        for stop in request.sampling.stop:
            text = text.split(stop, 1)[0]
        return iter(_words(text))


def _certain(word: str, asked: int | None) -> tuple[Logprob, ...]:
    """A script is sure of every word."""
    return () if asked is None else (Logprob(word.encode(), 0.0, ((word.encode(), 0.0),) if asked else ()),)


def _words(text: str) -> list[str]:
    """Cut text into words with the white space before them, and Chinese into characters."""
    return re.findall(r"\s*[\u3000-\u9fff\uff00-\uffef]|\s*[^\s\u3000-\u9fff\uff00-\uffef]+|\s+$", text)
