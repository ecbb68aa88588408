"""What the service around the engine costs: gate, job, records and HTTP, against the backend alone.

    python -m bench.overhead

The backend stands in this process and a whole server beside it, each with the model. Both run the same load of 16
streams in turn, first one and then the other, so that a machine that grows slower or faster meanwhile favours neither;
what counts is the median of the rounds' ratios. The client of the served ones runs on the same processor, so its share
is in the figure too.
"""

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial

from bench import servers
from bench.load import Target, measure, next_question
from bench.report import save
from engine.backends.qwen2 import Qwen2Backend
from engine.settings import Settings
from engine.types import ChatRequest, Delta, Message, Sampling

SETTLE_S = 5.0  # in which the other engine reads ahead what its answers ended with, and is quiet then
WANTED = 0.95

Speed = Callable[[], Awaitable[float]]


async def alone(backend: Qwen2Backend, streams: int, tokens: int) -> float:
    """Tokens per second."""
    began = time.perf_counter()
    produced = await asyncio.gather(*(_answer(backend, tokens) for _ in range(streams)))
    return sum(produced) / (time.perf_counter() - began)


async def _answer(backend: Qwen2Backend, tokens: int) -> int:
    sampling = Sampling(temperature=0, max_tokens=tokens, ignore_eos=True)
    messages = (Message("user", next_question()),)
    request = ChatRequest(messages=messages, sampling=sampling, source="api", person=None)
    async with aclosing(backend.stream(request)) as events:
        return sum([event.tokens async for event in events if isinstance(event, Delta)])


async def served(target: Target, streams: int, tokens: int) -> float:
    """Tokens per second."""
    return (await measure(target, streams=streams, tokens=tokens)).tokens_per_s


async def in_turn(first: Speed, second: Speed, rounds: int, settle_s: float) -> list[tuple[float, float]]:
    """The speeds of both by round; who begins changes from round to round."""
    found = []
    for number in range(rounds):
        speeds: dict[Speed, float] = {}
        for one in (first, second) if number % 2 == 0 else (second, first):
            await asyncio.sleep(settle_s)
            speeds[one] = await one()
        found.append((speeds[first], speeds[second]))
        print(f"  {found[-1][0]:.1f} and {found[-1][1]:.1f} tokens/s", flush=True)
    return found


async def _measured(streams: int, tokens: int, rounds: int) -> list[tuple[float, float]]:
    backend = Qwen2Backend(Settings(model="packaged", max_concurrent_requests=servers.STREAMS))
    await backend.start(lambda _: None)
    with servers.qdesk() as target:
        await alone(backend, streams, 8)
        await served(target, streams, 8)
        found = await in_turn(
            partial(alone, backend, streams, tokens), partial(served, target, streams, tokens), rounds, SETTLE_S
        )
    await backend.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=servers.STREAMS)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    asked, began = parser.parse_args(), datetime.now(UTC)
    found = asyncio.run(_measured(asked.streams, asked.tokens, asked.rounds))
    ratios = [through / direct for direct, through in found]
    rows = [
        f"| {direct:.1f} | {through:.1f} | {ratio:.3f} |"
        for (direct, through), ratio in zip(found, ratios, strict=True)
    ]
    head = f"| {asked.streams} streams, the backend alone, tokens/s | through HTTP | ratio |\n|---|---|---|"
    middle = f"| | median of the ratios | {statistics.median(ratios):.3f} |\n| | wanted | {WANTED} |"
    save(began, "\n".join([head, *rows, middle]), {"tokens/s": found, "ratios": ratios})


if __name__ == "__main__":
    main()
