"""What guessing from the text that was said before brings: one stream, with and without, on text that repeats or not.

python -m bench.lookup
"""

import asyncio
import time
from contextlib import aclosing
from datetime import UTC, datetime

from bench import texts
from bench.report import save
from engine.backends.qwen2 import Qwen2Backend
from engine.settings import Settings
from engine.types import ChatRequest, Delta, Message, Sampling

TOKENS = 160
QUESTIONS = {
    "repeats its prompt": f"Correct the spelling of this text and say all of it again:\n\n{texts.ENGLISH[:900]}",
    "has nothing to repeat": "Explain what a semaphore is, at length.",
}


async def _tokens_per_s(backend: Qwen2Backend, question: str, tokens: int) -> tuple[float, str]:
    """From the first token to the last, and the answer."""
    sampling = Sampling(temperature=0, max_tokens=tokens, ignore_eos=True)
    request = ChatRequest(messages=(Message("user", question),), sampling=sampling, source="api", person=None)
    said, count, first = "", 0, 0.0
    async with aclosing(backend.stream(request)) as events:
        async for event in events:
            if isinstance(event, Delta):
                first = first or time.perf_counter()
                said, count = said + event.text, count + event.tokens
    return count / (time.perf_counter() - first), said


async def main() -> None:
    began = datetime.now(UTC)
    speeds: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    answers: dict[str, set[str]] = {name: set() for name in QUESTIONS}
    for guessed in (0, Settings().lookup_tokens):
        backend = Qwen2Backend(Settings(model="packaged", lookup_tokens=guessed))
        await backend.start(lambda _: None)
        for name, question in QUESTIONS.items():
            await _tokens_per_s(backend, question, 8)  # warm, and the prompt is in the cache
            speed, answer = await _tokens_per_s(backend, question, TOKENS)
            speeds[name].append(speed)
            answers[name].add(answer)
        await backend.stop()
    lines = ["| text | without, tokens/s | with | ratio | same answer |", "|---|---|---|---|---|"]
    for name, (without, with_) in speeds.items():
        same = "yes" if len(answers[name]) == 1 else "no"
        lines.append(f"| {name} | {without:.1f} | {with_:.1f} | {with_ / without:.2f} | {same} |")
    save(began, "\n".join(lines), speeds)


if __name__ == "__main__":
    asyncio.run(main())
