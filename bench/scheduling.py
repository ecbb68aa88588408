"""Who waits for whom: short questions beside a long prompt, shared prefixes, and a conversation's next turn.

    python -m bench.scheduling

The backend runs in this process, without pages, records or HTTP. Every figure is a median, and every target a ratio of
two figures of the same run.
"""

import asyncio
import random
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

from bench.report import save
from bench.texts import CHINESE, ENGLISH
from engine.backends.qwen2 import Qwen2Backend
from engine.settings import Settings
from engine.types import ChatRequest, Delta, Message, Sampling

STREAMS, LONG, SYSTEM, CONVERSATION, TURNS, CONVERSATIONS, ROUNDS = 8, 3500, 600, 3000, 10, 3, 5
THINKING_S = 1.0  # before a next turn: the least that a person takes
WORDS = (ENGLISH + CHINESE).split()


@dataclass(slots=True)
class Asked:
    """One request: when it was asked and when each of its tokens came, in seconds."""

    at: float = field(default_factory=time.perf_counter)
    pieces: list[tuple[float, int]] = field(default_factory=list)  # when, and how many tokens: characters may take some
    text: str = ""
    flowing: asyncio.Event = field(default_factory=asyncio.Event)  # a few tokens have come

    @property
    def ttft(self) -> float:
        return self.pieces[0][0] - self.at

    def gaps(self) -> list[float]:
        """Between two tokens."""
        return [after - before for (before, _), (after, tokens) in pairwise(self.pieces) if tokens == 1]


class Engine:
    def __init__(self, backend: Qwen2Backend) -> None:
        self.backend = backend
        self._random = random.Random(0)

    def words(self, tokens: int) -> str:
        """Fresh text of about so many tokens, that nothing else begins with."""
        text = ""
        while len(self.backend.tokenize([Message("text", text + ".")])) <= tokens:
            text += " ".join(self._random.choice(WORDS) for _ in range(max(1, tokens // 40))) + " "
        return self.backend.detokenize(self.backend.tokenize([Message("text", text)])[:tokens]).strip("\ufffd")

    async def ask(
        self, messages: Sequence[Message], max_tokens: int, asked: Asked | None = None, *, ends: bool = False
    ) -> Asked:
        """`ends` lets the model end its answer; a text that went on past its end would be none that anybody sends."""
        asked = asked or Asked()
        sampling = Sampling(temperature=0, max_tokens=max_tokens, ignore_eos=not ends)
        request = ChatRequest(messages=tuple(messages), sampling=sampling, source="api", person=None)
        async with aclosing(self.backend.stream(request)) as events:
            async for event in events:
                if isinstance(event, Delta):
                    asked.pieces.append((time.perf_counter(), event.tokens))
                    asked.text += event.text
                    if len(asked.pieces) == 4:
                        asked.flowing.set()
        return asked

    async def question(self, max_tokens: int = 1) -> Asked:
        return await self.ask([Message("user", self.words(30))], max_tokens)

    @asynccontextmanager
    async def streaming(self, count: int) -> AsyncIterator[list[Asked]]:
        """So many answers that stream for as long as the block takes."""
        answers = [Asked() for _ in range(count)]
        tasks = [asyncio.ensure_future(self.ask([Message("user", self.words(30))], 3000, asked)) for asked in answers]
        await asyncio.gather(*(asked.flowing.wait() for asked in answers))
        yield answers
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def beside_a_long_prompt(engine: Engine) -> dict[str, float]:
    alone = (await engine.ask([Message("user", engine.words(LONG))], 1)).ttft
    prompt = [Message("user", engine.words(LONG))]  # now: making it up keeps the event loop busy for a while
    async with engine.streaming(STREAMS) as answers:
        before = statistics.median([(await engine.question()).ttft for _ in range(ROUNDS)])
        for asked in answers:
            del asked.pieces[:-1]
        await asyncio.sleep(1)
        usual = statistics.median(gap for asked in answers for gap in asked.gaps())
        for asked in answers:
            del asked.pieces[:-1]
        long = asyncio.ensure_future(engine.ask(prompt, 1))
        await asyncio.sleep(1)
        shorts = []
        while not long.done():
            shorts.append((await engine.question()).ttft)
            await asyncio.sleep(3)
        gaps = [gap for asked in answers for gap in asked.gaps()]
    return {
        "short question's TTFT, beside a long prompt over without": statistics.median(shorts) / before,
        "largest gap of 8 answers over their median": max(gaps) / statistics.median(gaps),
        "largest gap of 8 answers over their median with nothing beside them": max(gaps) / usual,
        "long prompt's TTFT, beside 8 answers and short questions over alone": (await long).ttft / alone,
    }


async def shared_prefix(engine: Engine) -> dict[str, float]:
    system = Message("system", engine.words(SYSTEM))

    async def ttft(*before: Message) -> float:
        return (await engine.ask([*before, Message("user", engine.words(30))], 1)).ttft

    first = await ttft(system)
    pairs = [(await ttft(), await ttft(system)) for _ in range(ROUNDS)]  # in turn: the machine's pace changes meanwhile
    plain, later = (statistics.median(ttfts) for ttfts in zip(*pairs, strict=True))
    return {
        f"TTFT with a system prompt of {SYSTEM} tokens over without, first conversation": first / plain,
        f"TTFT with a system prompt of {SYSTEM} tokens over without, later conversations": later / plain,
    }


async def next_turns(engine: Engine) -> dict[str, float]:
    conversations = [await turns(engine) for _ in range(CONVERSATIONS)]
    first, last = (statistics.median(ttfts) for ttfts in zip(*conversations, strict=True))
    return {f"TTFT of turn {TURNS}, after {CONVERSATION} tokens, over turn 1's": last / first}


async def turns(engine: Engine) -> tuple[float, float]:
    """TTFT of the first and of the last turn of one conversation."""
    messages, ttfts = [], []
    for _ in range(TURNS):
        messages.append(Message("user", engine.words(30)))
        await asyncio.sleep(THINKING_S)
        answer = await engine.ask(messages, 8, ends=True)
        ttfts.append(answer.ttft)
        messages.append(Message("assistant", answer.text))
        filler = CONVERSATION // TURNS - 40
        messages.append(Message("user", engine.words(filler)))
        messages.append(Message("assistant", (await engine.ask(messages, 8, ends=True)).text))
    return ttfts[0], ttfts[-1]


async def main() -> None:
    began = datetime.now(UTC)
    backend = Qwen2Backend(Settings(model="packaged"))
    await backend.start(lambda _: None)
    engine = Engine(backend)
    await engine.question(8)
    figures: dict[str, float] = {}
    for scenario in (shared_prefix, next_turns, beside_a_long_prompt):
        figures |= await scenario(engine)
    await backend.stop()
    save(
        began,
        "\n".join(["| what | ratio |", "|---|---|"] + [f"| {k} | {v:.2f} |" for k, v in figures.items()]),
        figures,
    )


if __name__ == "__main__":
    asyncio.run(main())
