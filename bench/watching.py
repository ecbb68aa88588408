"""What it costs the server that administrators watch, and that nobody does.

    python -m bench.watching                       # 200 chat pages and five of /admin; about two minutes

The server samples itself once a second, for all who watch together. What is printed is its processor time while nothing
else happens, as a share of one core, with more and more pages open.
"""

import argparse
import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import psutil

from bench.pages import PEOPLE, many, signed_in
from bench.report import save
from tests.server import RunningServer, running_server

FOR_S, SETTLES_S = 20.0, 5.0


async def share_of_a_core(server: RunningServer) -> float:
    await asyncio.sleep(SETTLES_S)
    process = psutil.Process(server.process.pid)
    before = sum(process.cpu_times()[:2])
    await asyncio.sleep(FOR_S)
    return float(sum(process.cpu_times()[:2]) - before) / FOR_S


async def measure(server: RunningServer, pages: int, admins: int) -> dict[str, float]:
    shares = {"nobody": await share_of_a_core(server)}
    staff = [await signed_in(server, name) for name in PEOPLE]
    administrator = await signed_in(server, "admin")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(many(server, staff, pages))
        shares[f"{pages} chat pages"] = await share_of_a_core(server)
        for n in range(1, admins + 1):
            await stack.enter_async_context(many(server, [administrator], 1, "/admin"))
            if n in (1, admins):
                shares[f"and {n} of /admin"] = await share_of_a_core(server)
    for browser in (*staff, administrator):
        await browser.aclose()
    return shares


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pages", type=int, default=200)
    options.add_argument("--admins", type=int, default=5)
    chosen, began = options.parse_args(), datetime.now(UTC)
    with running_server(accounts=PEOPLE) as server:
        shares = asyncio.run(measure(server, chosen.pages, chosen.admins))
    rows = [f"| {who} | {share:.2%} |" for who, share in shares.items()]
    save(began, "\n".join(["| who looks | of a core |", "|---|---|", *rows]), shares)


if __name__ == "__main__":
    main()
