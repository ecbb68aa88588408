"""Closed-loop load on an OpenAI-compatible server: N streams at once, T tokens each, all prompts different.

Knows the OpenAI streaming form and nothing of who answers. Tokens are counted by the server's own usage, or by content
chunks where it reports none. Import `measure`, or run it by hand:

    python -m bench.load http://127.0.0.1:8080/v1 --streams 8 --tokens 64 --key sk-...
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from itertools import count, pairwise
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
_numbers = count(1)


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


async def measure(target: Target, *, streams: int, tokens: int) -> Figures:
    """Ask `streams` questions at once for `tokens` tokens each. Raises RuntimeError for any answer but 200."""
    headers = {"Authorization": f"Bearer {target.key}"} if target.key else {}
    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(timeout=900, headers=headers, limits=limits) as client:
        began = time.perf_counter()
        found = await asyncio.gather(*(_one_stream(client, target, tokens) for _ in range(streams)))
        wall = time.perf_counter() - began
    arrivals = [times for times, _ in found]
    first = [times[1] - times[0] for times in arrivals]
    gaps = [b - a for times in arrivals for a, b in pairwise(times[1:])] or [0.0]
    produced = sum(count for _, count in found)
    return Figures(
        streams, produced, produced / wall, statistics.median(first), max(first), statistics.median(gaps), max(gaps)
    )


def median(rounds: list[Figures]) -> Figures:
    """Each figure's median over several rounds of the same load."""
    names = [name for name in asdict(rounds[0]) if name not in ("streams", "tokens")]
    middle = {name: statistics.median(getattr(figures, name) for figures in rounds) for name in names}
    return Figures(rounds[0].streams, rounds[0].tokens, **middle)


async def _one_stream(client: httpx.AsyncClient, target: Target, tokens: int) -> tuple[list[float], int]:
    """Return when the question was asked and when each content chunk came, and how many tokens the answer has."""
    number = next(_numbers)
    body = {
        "model": target.model,
        "messages": [
            {"role": "user", "content": f"({number}) Explain {TOPICS[number % len(TOPICS)]} at great length."}
        ],
        "max_tokens": tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **dict(target.extra),
    }
    times = [time.perf_counter()]
    async with client.stream("POST", f"{target.url}/chat/completions", json=body) as response:
        if response.status_code != 200:
            raise RuntimeError(f"{response.status_code}: {(await response.aread())[:300]!r}")
        reported = 0
        async for chunk in _chunks(response):
            reported = (chunk.get("usage") or {}).get("completion_tokens", reported)
            if any(choice.get("delta", {}).get("content") for choice in chunk.get("choices") or []):
                times.append(time.perf_counter())
    if len(times) < 2:
        raise RuntimeError("the answer was empty")
    return times, reported or len(times) - 1


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
