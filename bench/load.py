"""Closed-loop load on an OpenAI-compatible server: N streams at once, T tokens each, all prompts different.

Knows the OpenAI streaming form and nothing of who answers. Tokens are counted by the server's own usage; where it
reports none, by `count` from the text, or else by content chunks. Import `measure`, or run it by hand:

    python -m bench.load http://127.0.0.1:8080/v1 --streams 8 --tokens 64 --key sk-...
"""

import argparse
import asyncio
import itertools
import json
import math
import statistics
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import httpx

TOPICS = [
    "how a semaphore works",
    "北京的历史",
    "queues at a bakery",
    "three colours of the sky",
    "TCP slow start",
    "为什么天空是蓝色的",
    "regular expressions for e-mail addresses",
    "greetings in French",
]
_numbers = itertools.count(1)
Count = Callable[[str], int]  # the tokens of a text


@dataclass(frozen=True, slots=True)
class Figures:
    """What one round of load came to. Times in seconds; `gap` is between two chunks of one stream."""

    streams: int
    tokens: int
    tokens_per_s: float
    ttft_median_s: float
    ttft_max_s: float
    gap_median_s: float
    gap_max_s: float


@dataclass(frozen=True, slots=True)
class Target:
    """A server to load: base URL up to and with /v1, the model's name there, and what its requests need beside."""

    url: str
    model: str = "default"
    key: str = ""
    extra: tuple[tuple[str, Any], ...] = ()
    pid: int = 0  # of its process, where it was started here


@dataclass(eq=False, slots=True)
class Answer:
    """What has come of one stream. `began` is set at the first piece, and at the end if there was none."""

    asked_at: float
    pieces: list[tuple[float, str]] = field(default_factory=list)  # when, what
    reported: int = 0  # tokens, by the server
    began: asyncio.Event = field(default_factory=asyncio.Event)

    def tokens(self, count: Count | None, since: float = 0.0) -> int:
        """All that the server reported, or those of the pieces that came after `since`."""
        if self.reported and not since:
            return self.reported
        later = [text for at, text in self.pieces if at > since]
        if count is None:
            return len(later)
        every = "".join(text for _, text in self.pieces)
        return count(every) - count(every.removesuffix("".join(later)))


async def measure(
    target: Target,
    *,
    streams: int,
    tokens: int,
    window_s: float = math.inf,
    count: Count | None = None,
    question: str = "",
) -> Figures:
    """Ask `streams` questions at once for `tokens` tokens each. Raises RuntimeError for any answer but 200.

    They are all different, unless there is a `question`.

    What is not finished `window_s` after the last stream has begun is broken off, and the speed is that of the window:
    a slow server takes no longer than that, and is measured without its way to the first token, which favours it.
    """
    headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(timeout=900, headers=headers, limits=limits) as client:
        start = time.perf_counter()
        answers = [Answer(start) for _ in range(streams)]
        running = asyncio.gather(
            *(_one_stream(client, target, tokens, answer, question or next_question()) for answer in answers)
        )
        all_begun, end = await _until_over(running, answers, window_s)
    produced = sum(answer.tokens(count, all_begun) for answer in answers)
    first = [answer.pieces[0][0] - start for answer in answers]
    gaps = [later[0] - earlier[0] for answer in answers for earlier, later in pairwise(answer.pieces)] or [0.0]
    return Figures(
        streams,
        produced,
        produced / (end - (all_begun or start)),
        statistics.median(first),
        max(first),
        statistics.median(gaps),
        max(gaps),
    )


async def _until_over(
    running: "asyncio.Future[list[None]]", answers: list[Answer], window_s: float
) -> tuple[float, float]:
    """Wait for all streams or for the end of the window. Returns when that began, 0 if all have ended, and the end."""
    for answer in answers:
        await answer.began.wait()
    all_begun = time.perf_counter()
    try:
        await asyncio.wait_for(running, window_s)
    except TimeoutError:
        return all_begun, min(time.perf_counter(), all_begun + window_s)
    return 0.0, time.perf_counter()


def median(rounds: list[Figures]) -> Figures:
    """Each figure's median over several rounds of the same load."""
    names = [name for name in asdict(rounds[0]) if name not in ("streams", "tokens")]
    middle = {name: statistics.median(getattr(figures, name) for figures in rounds) for name in names}
    return Figures(rounds[0].streams, rounds[0].tokens, **middle)


def next_question() -> str:
    """One that nobody has asked in this process; each wants a long answer."""
    number = next(_numbers)
    return f"({number}) Explain {TOPICS[number % len(TOPICS)]} at great length."


async def _one_stream(client: httpx.AsyncClient, target: Target, tokens: int, answer: Answer, question: str) -> None:
    """Ask, and note what comes and when."""
    body = {
        "model": target.model,
        "messages": [{"role": "user", "content": question}],
        "max_tokens": tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **dict(target.extra),
    }
    try:
        async with client.stream("POST", f"{target.url}/chat/completions", json=body) as response:
            if response.status_code != 200:
                raise RuntimeError(f"{response.status_code}: {(await response.aread())[:300]!r}")
            async for chunk in _chunks(response):
                answer.reported = (chunk.get("usage") or {}).get("completion_tokens", answer.reported)
                text = "".join(choice.get("delta", {}).get("content") or "" for choice in chunk.get("choices") or [])
                if text:
                    answer.pieces.append((time.perf_counter(), text))
                    answer.began.set()
        if not answer.pieces:
            raise RuntimeError("the answer was empty")
    finally:
        answer.began.set()


async def _chunks(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    async for line in response.aiter_lines():
        if line.startswith("data: ") and line != "data: [DONE]":
            chunk: dict[str, Any] = json.loads(line[6:])
            if "error" in chunk:
                raise RuntimeError(str(chunk["error"]))
            yield chunk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--model", default="default")
    parser.add_argument("--key", default="")
    parser.add_argument("--extra", default="{}", help="JSON object that is added to each request")
    asked = parser.parse_args()
    target = Target(asked.url, asked.model, asked.key, tuple(json.loads(asked.extra).items()))
    print(json.dumps(asdict(asyncio.run(measure(target, streams=asked.streams, tokens=asked.tokens))), indent=1))


if __name__ == "__main__":
    main()
