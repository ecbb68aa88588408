"""Does the server's memory stay flat? Requests of mixed length over HTTP, a fifth of which go away in the middle.

    python -m bench.memory                                   the packaged model, 2,000 requests: by the speeds of
                                                             two cores half an hour, not timed yet
    python -m bench.memory --tiny --requests 2000            a tiny random model: minutes; the same code but the weights

Prints the server's resident memory as it goes on. Flat means: the last fifth's median is within 3 % of the second
fifth's. The first is left out, in which libraries and the KV cache's slots take their memory.
"""

import argparse
import asyncio
import json
import random
import statistics
import tempfile
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import httpx
import psutil

from bench import servers
from bench.load import Target
from bench.report import save
from bench.texts import CHINESE, ENGLISH
from tests.engine.backends.qwen2.tiny import make_tiny

STREAMS, CANCELLED, LOOKS, CONTEXT = 16, 0.2, 50, 1024
TEXT, LONGEST = ENGLISH + CHINESE, 250  # characters of a question; a tiny model reads each byte


async def load(target: Target, requests: int) -> list[float]:
    """Ask so many questions and return the server's resident memory in MiB, LOOKS times on the way."""
    chance, numbers, memory = random.Random(0), count(), list[float]()
    server = psutil.Process(target.pid)

    async def ask_on(http: httpx.AsyncClient) -> None:
        while (number := next(numbers)) < requests:
            at = chance.randrange(len(TEXT) - LONGEST)
            body = {
                "messages": [{"role": "user", "content": TEXT[at : at + chance.choice([20, 100, LONGEST])]}],
                "max_tokens": chance.choice([1, 16, 64]),
                "stream": True,
            } | dict(target.extra)
            leave_after = chance.randrange(1, 6) if chance.random() < CANCELLED else None
            await _read(http, body, leave_after)
            if number % (requests // LOOKS) == 0:
                memory.append(server.memory_info().rss / 2**20)
                print(f"{number:6} requests, {memory[-1]:.0f} MiB", flush=True)

    async with httpx.AsyncClient(base_url=target.url, headers={"Authorization": f"Bearer {target.key}"}) as http:
        await asyncio.gather(*(ask_on(http) for _ in range(STREAMS)))
    return memory


async def _read(http: httpx.AsyncClient, body: dict[str, object], leave_after: int | None) -> None:
    """Read an answer, or go away after so many lines of it."""
    async with http.stream("POST", "/chat/completions", json=body, timeout=900) as answer:
        if answer.status_code != 200:
            raise RuntimeError(f"{answer.status_code}: {(await answer.aread())[:300]!r}")
        lines = 0
        async for line in answer.aiter_lines():
            lines += bool(line)
            with suppress(ValueError):
                if "error" in json.loads(line.removeprefix("data: ")):
                    raise RuntimeError(line)
            if lines == leave_after:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--tiny", action="store_true", help="a tiny random model instead of the packaged one")
    asked = parser.parse_args()
    began = datetime.now(UTC)
    with ExitStack() as stack:
        model = "packaged"
        settings = {"QDESK_KV_CACHE_MB": "512", "QDESK_MAX_CONTEXT_TOKENS": str(CONTEXT)}
        if asked.tiny:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            model = str(make_tiny(folder / "tiny", context=CONTEXT))
            settings |= {"QDESK_MODELS_DIR": str(folder), "QDESK_KV_CACHE_MB": "16"}  # twenty slots, as many as above
        target = stack.enter_context(servers.qdesk(model, **settings))
        memory = asyncio.run(load(target, asked.requests))
    fifth = len(memory) // 5
    early, late = statistics.median(memory[fifth : 2 * fifth]), statistics.median(memory[-fifth:])
    rows = {"after the first fifth": early, "in the last fifth": late}
    lines = ["| resident memory | MiB |", "|---|---|", *(f"| {name} | {value:.0f} |" for name, value in rows.items())]
    save(began, "\n".join([*lines, f"| ratio | {late / early:.3f} |"]), {"MiB": memory})


if __name__ == "__main__":
    main()
