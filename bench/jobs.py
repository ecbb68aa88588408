"""The chat page's own way to an answer, in this process: service, gate, job and record, followed as a page follows it.

    python -m bench.jobs --streams 16 --tokens 64

Prints the rounds of each load as a line of JSON. What a page does beside, drawing and sending to a browser, is not in
it; bench.streaming measures that.
"""

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from bench.load import Figures, next_question
from engine.backends.qwen2 import Qwen2Backend
from engine.service import ChatService
from engine.settings import Settings
from engine.types import ChatRequest, Message, Sampling, Status
from storage import Store


@asynccontextmanager
async def served(streams: int) -> AsyncIterator[ChatService]:
    """The service with the packaged model and a log in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(model="packaged", max_concurrent_requests=streams, max_requests_per_user=streams)
        store = Store(f"sqlite:///{Path(folder) / 'qdesk.db'}")
        store.open()
        service = ChatService(settings, Qwen2Backend(settings), store.exchanges)
        await service.start()
        try:
            yield service
        finally:
            await service.stop()
            store.close()


async def measure_jobs(service: ChatService, streams: int, tokens: int) -> Figures:
    """As bench.load measures a server. Raises RuntimeError for an answer that is not done."""
    began = time.perf_counter()
    found = await asyncio.gather(*(_one(service, tokens) for _ in range(streams)))
    wall = time.perf_counter() - began
    first = [times[1] - times[0] for times, _ in found]
    gaps = [later - earlier for times, _ in found for earlier, later in pairwise(times[1:])] or [0.0]
    produced = sum(tokens for _, tokens in found)
    return Figures(
        streams, produced, produced / wall, statistics.median(first), max(first), statistics.median(gaps), max(gaps)
    )


async def _one(service: ChatService, tokens: int) -> tuple[list[float], int]:
    times = [time.perf_counter()]
    job = await service.submit(
        ChatRequest(
            messages=(Message("user", next_question()),),
            sampling=Sampling(temperature=0, max_tokens=tokens, ignore_eos=True),
            person=None,
            source="page",
        )
    )
    async for update in job.follow():
        if update.deltas:
            times.append(time.perf_counter())
    if update.status is not Status.DONE:
        raise RuntimeError(f"{update.status}: {update.error}")
    return times, update.completion_tokens


async def _rounds(streams: list[int], tokens: list[int], rounds: int) -> AsyncIterator[list[Figures]]:
    """By load, each after a short one that warms up."""
    async with served(max(streams)) as service:
        for each in tokens:
            for many in streams:
                await measure_jobs(service, many, 8)
                yield [await measure_jobs(service, many, each) for _ in range(rounds)]


async def _print(streams: list[int], tokens: list[int], rounds: int) -> None:
    async for found in _rounds(streams, tokens, rounds):
        print(json.dumps([asdict(figures) for figures in found]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[16])
    parser.add_argument("--tokens", type=int, nargs="+", default=[64])
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    asyncio.run(_print(asked.streams, asked.tokens, asked.rounds))


if __name__ == "__main__":
    main()
