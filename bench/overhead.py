"""What the service around the engine costs: gate, job, records and HTTP, against the backend alone.

    python -m bench.overhead

Both run the same load of 16 streams, one after the other, several times. The client of the served rounds runs on the
same processor, so its share is in the figure too.
"""

import argparse
import asyncio
import statistics
import time
from contextlib import aclosing
from datetime import UTC, datetime

from bench import servers
from bench.load import TOPICS, measure
from bench.report import save
from engine.backends.qwen2 import Qwen2Backend
from engine.settings import Settings
from engine.types import ChatRequest, Delta, Message, Sampling


async def _answer(backend: Qwen2Backend, number: int, tokens: int) -> int:
    question = f"({number}) Explain {TOPICS[number % len(TOPICS)]} at great length."
    sampling = Sampling(temperature=0, max_tokens=tokens, ignore_eos=True)
    request = ChatRequest(messages=(Message("user", question),), sampling=sampling, source="api", person=None)
    async with aclosing(backend.stream(request)) as events:
        return sum([event.tokens async for event in events if isinstance(event, Delta)])


async def _alone(streams: int, tokens: int, rounds: int) -> list[float]:
    backend = Qwen2Backend(Settings(model="packaged", max_concurrent_requests=servers.STREAMS))
    await backend.start(lambda _: None)
    await _answer(backend, 0, 8)
    speeds = []
    for turn in range(1, rounds + 1):
        began = time.perf_counter()
        produced = await asyncio.gather(*(_answer(backend, turn * 100 + i, tokens) for i in range(streams)))
        speeds.append(sum(produced) / (time.perf_counter() - began))
    await backend.stop()
    return speeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=16)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    began = datetime.now(UTC)
    alone = asyncio.run(_alone(asked.streams, asked.tokens, asked.rounds))
    with servers.qdesk() as target:
        asyncio.run(measure(target, streams=asked.streams, tokens=8))
        served = [
            asyncio.run(measure(target, streams=asked.streams, tokens=asked.tokens)).tokens_per_s
            for _ in range(asked.rounds)
        ]
    share = statistics.median(served) / statistics.median(alone)
    rows = {"the backend alone": alone, "through HTTP": served}
    lines = [f"| {name} | {', '.join(f'{speed:.1f}' for speed in speeds)} |" for name, speeds in rows.items()]
    table = "\n".join([f"| {asked.streams} streams | tokens/s |", "|---|---|", *lines, f"| ratio | {share:.3f} |"])
    save(began, table, rows)


if __name__ == "__main__":
    main()
