"""A backend that plays a script: pages, API and service are tested and shown without a model.

The answer is chosen by the prompt: with `SCRIPT` lines added by a test, or by a phrase that anybody can type
(`DEMO` below), else the prompt is echoed. An answer that is gone on with continues where it stopped. `history` keeps
every request. Knows no tokenizer: a word is a token.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence

from engine.errors import BackendFailed
from engine.titles import WISH
from engine.types import ChatRequest, Delta, Done, Event, FinishReason, Message, Progress, Report, Started, opening

DEMO = {
    "fail before": "",
    "fail midway": "This answer breaks off",
    "long": " ".join(f"word{i}" for i in range(2000)),
}


class ScriptedBackend:
    """Says `answers[prompt]`, one word every `pause_s` seconds; `hold()` makes every stream wait until `go()`."""

    def __init__(self, *, context_tokens: int = 4096, pause_s: float = 0.02) -> None:
        self.model, self.quantization, self.reason = "scripted", "", "A script plays the model."
        self.context_tokens, self.capacity = context_tokens, 256
        self.pause_s = pause_s
        self.answers: dict[str, str] = {}
        self.history: list[ChatRequest] = []
        self.active: Counter[str] = Counter()  # streams that are open, by request id
        self.trouble: str | None = None
        self._going = asyncio.Event()
        self._going.set()

    async def start(self, report: Report) -> None:
        report(Progress("reading the script", 1, 1))

    def count_tokens(self, messages: Sequence[Message]) -> int:
        return sum(len(_words(message.content)) for message in messages)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        self.history.append(request)
        self.active[request.id] += 1
        try:
            await self._going.wait()
            prompt_tokens = self.count_tokens(request.messages)
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
                yield Delta(word)
            if "fail midway" in request.prompt and not opening(request.messages):
                raise BackendFailed("The script says to fail midway.")
            yield Done(reason, prompt_tokens, count)
        finally:
            del self.active[request.id]

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


def _words(text: str) -> list[str]:
    """Cut text into words with the white space before them, and Chinese into characters."""
    return re.findall(r"\s*[\u3000-\u9fff\uff00-\uffef]|\s*[^\s\u3000-\u9fff\uff00-\uffef]+|\s+$", text)
