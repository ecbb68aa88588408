"""What guessing from the text that was said before brings: one stream, with and without, on text that repeats or not.

    python -m bench.lookup
    python -m bench.lookup --peer http://127.0.0.1:8090/v1      beside llama.cpp's server (bench/peers/llama_server.py)

Without --peer llama-cpp-python answers the same questions in the same run, where it is installed. Speeds are from the
first token to the last.
"""

import argparse
import asyncio
import statistics
import time
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial

from bench import servers, texts
from bench.load import Figures, measure
from bench.report import save
from engine.backends.qwen2 import Qwen2Backend
from engine.settings import Settings
from engine.types import ChatRequest, Delta, Message, Sampling

TOKENS, ROUNDS = 160, 3
WANTED = 1.5  # times llama.cpp's speed, with guesses, on the first of these
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


async def ours(guessed: int) -> dict[str, tuple[float, str]]:
    """By text: the median speed and the answer, guessing so many tokens at most."""
    found = {}
    backend = Qwen2Backend(Settings(model="packaged", lookup_tokens=guessed))
    await backend.start(lambda _: None)
    for name, question in QUESTIONS.items():
        await _tokens_per_s(backend, question, 8)  # warm, and the prompt is in the cache
        rounds = [await _tokens_per_s(backend, question, TOKENS) for _ in range(ROUNDS)]
        found[name] = statistics.median(speed for speed, _ in rounds), rounds[-1][1]
    await backend.stop()
    return found


def llamas(url: str) -> dict[str, float]:
    """By text: the median speed of the server there, or of llama-cpp-python. Raises NotHere or RuntimeError."""
    found = {}
    for name, question in QUESTIONS.items():
        rounds = _served(url, question) if url else _in_process(question)
        found[name] = statistics.median(
            one.tokens / (one.tokens / one.tokens_per_s - one.ttft_median_s) for one in rounds
        )
    return found


def _served(url: str, question: str) -> list[Figures]:
    one = partial(measure, servers.of_another(url), streams=1, question=question)
    asyncio.run(one(tokens=8))  # warm, and the prompt is in the cache, as for ours
    return [asyncio.run(one(tokens=TOKENS)) for _ in range(ROUNDS)]


def _in_process(question: str) -> list[Figures]:
    (rounds,) = servers.llama("--tokens", str(TOKENS), "--rounds", str(ROUNDS), "--question", question)
    return rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", default="", metavar="URL", help="a server that runs already, up to its /v1")
    url, began = parser.parse_args().peer, datetime.now(UTC)
    without, guessing = asyncio.run(ours(0)), asyncio.run(ours(Settings().lookup_tokens))
    try:
        llama, note = llamas(url), f"Wanted over llama.cpp, on text that repeats its prompt: {WANTED}."
    except (servers.NotHere, RuntimeError) as error:
        llama, note = {}, f"Left out: llama.cpp ({error})."
    lines = [
        "| text | without, tokens/s | with | ratio | same answer | llama.cpp | with over it |",
        "|---|---|---|---|---|---|---|",
    ]
    figures: dict[str, object] = {"left out": "" if llama else note}
    for name in QUESTIONS:
        (plain, said), (guessed, said_too) = without[name], guessing[name]
        beside = f"{llama[name]:.1f} | {guessed / llama[name]:.2f}" if llama else " | "
        same = "yes" if said == said_too else "no"
        lines.append(f"| {name} | {plain:.1f} | {guessed:.1f} | {guessed / plain:.2f} | {same} | {beside} |")
        figures[name] = {"without": plain, "with": guessed, "same answer": same, "llama.cpp": llama.get(name)}
    save(began, "\n".join([*lines, "", note]), figures)


if __name__ == "__main__":
    main()
