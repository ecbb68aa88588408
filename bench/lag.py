"""How late the event loop comes to its calls while the packaged model answers 16 at once and 20 pages watch.

    python -m bench.lag                            # about two minutes

Pages and streams wait for nothing but this loop. The server measures it itself (`qdesk_event_loop_lag_seconds`);
what is read here is the difference between before and after. Four of the pages ask as well, so that answers are drawn
too.
"""

import argparse
import asyncio
import re
from datetime import UTC, datetime

import httpx

from bench.load import Target, measure
from bench.pages import PEOPLE, many, signed_in
from bench.report import save
from bench.servers import ENDLESS
from tests.server import API_KEY, RunningServer, running_server

BUCKET = re.compile(r'^qdesk_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)
ASKING = 4  # of the pages
WANTED_S = 0.05  # 99th percentile

Buckets = dict[float, float]  # upper bound in seconds -> how many were not later, since the start


async def buckets(server: RunningServer) -> Buckets:
    async with httpx.AsyncClient(headers={"Authorization": f"Bearer {API_KEY}"}) as client:
        text = (await client.get(f"{server.url}/metrics")).text
    return {float(bound): float(count) for bound, count in BUCKET.findall(text)}


def at_most(before: Buckets, after: Buckets, share: float) -> float:
    """The bound in seconds that this share of what was measured between the two did not pass."""
    counts = {bound: after[bound] - before[bound] for bound in sorted(after)}
    return next(bound for bound, count in counts.items() if count >= share * max(counts.values()))


async def under_load(server: RunningServer, *, pages: int, streams: int, tokens: int) -> tuple[Buckets, Buckets, float]:
    target = Target(f"{server.url}/v1", key=API_KEY, extra=ENDLESS)
    await measure(target, streams=streams, tokens=8)
    browsers = [await signed_in(server, name) for name in PEOPLE]
    async with many(server, browsers, pages) as opened:
        before = await buckets(server)
        for page in opened[:ASKING]:
            await page.ask("Explain how a queue works, at great length.")
        figures = await measure(target, streams=streams - ASKING, tokens=tokens)
        after = await buckets(server)
    for browser in browsers:
        await browser.aclose()
    return before, after, figures.tokens_per_s


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pages", type=int, default=20)
    options.add_argument("--streams", type=int, default=16)
    options.add_argument("--tokens", type=int, default=128)
    chosen, began = options.parse_args(), datetime.now(UTC)
    places = {"max_concurrent_requests": chosen.streams, "max_new_tokens": chosen.tokens}
    with running_server(accounts=PEOPLE, backend="qwen2", model="packaged", **places) as server:
        before, after, speed = asyncio.run(
            under_load(server, pages=chosen.pages, streams=chosen.streams, tokens=chosen.tokens)
        )
    quantiles = {f"{share:.0%}": at_most(before, after, share) for share in (0.5, 0.95, 0.99, 1)}
    rows = [f"| {name} of the calls were late by at most, ms | {1000 * late:g} |" for name, late in quantiles.items()]
    wanted = f"| wanted for 99%, ms | {1000 * WANTED_S:g} |"
    lines = ["| what | how much |", "|---|---|", *rows, wanted, f"| tokens/s of the programs beside | {speed:.1f} |"]
    save(began, "\n".join(lines), {"late_s": quantiles, "tokens_per_s": speed})


if __name__ == "__main__":
    main()
