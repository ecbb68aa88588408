"""kill -9 at random moments, again and again on one data folder, and what the log holds after each restart.

    python -m bench.kills --times 200

Half of the kills come while the server starts, migrates or loads, the others while eight programs are answered. After
each, the database must pass SQLite's own checks, hold every answer that a program saw finished, and the next start must
be ready by itself with nothing left running. Ends with 1 at the first thing that is not so.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from bench.report import save
from tests.server import RunningServer
from tests.test_server_crash import Load, loaded_server, logged


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    asked, began = parser.parse_args(), datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = asyncio.run(killed(Path(folder) / "data", asked.times, random.Random(asked.seed)))
        except AssertionError as wrong:
            sys.exit(f"{wrong}; try again with --seed {asked.seed}")
    found["took, s"] = round((datetime.now(UTC) - began).total_seconds())
    rows = [f"| {what} | {number} |" for what, number in found.items()]
    save(began, "\n".join(["| what | came to |", "|---|---|", *rows]), found)


async def killed(data_dir: Path, times: int, dice: random.Random) -> dict[str, float]:
    """Kill that often and sum up. Raises AssertionError for an answer that is lost or stuck, and for a damaged file."""
    finished: dict[str, str] = {}  # answers that a program has seen to their end, by id
    moments: Counter[str] = Counter()
    starts_s: list[float] = []
    for _ in range(times):
        began = time.monotonic()
        if dice.random() < 0.5:
            with loaded_server(data_dir, ready=False) as server:  # it answers, and loads perhaps
                server.process.kill()
                server.process.wait()
            moments["kills at the start"] += 1
        else:
            with loaded_server(data_dir) as server:
                starts_s.append(time.monotonic() - began)
                moments["kills under load"] += 1
                await under_load(server, dice, finished)
        check(data_dir, finished)
    with loaded_server(data_dir):
        statuses = Counter(status for status, _ in logged(data_dir).values())
    assert set(statuses) <= {"done", "interrupted"}, f"left unfinished: {statuses}"
    starts_s.sort()
    return {
        **moments,
        "answers that a program saw finished, all in the log": len(finished),
        **{f"rows that say {status}": count for status, count in sorted(statuses.items())},
        "ready after, median, s": round(starts_s[len(starts_s) // 2], 2),
        "ready after, at most, s": round(starts_s[-1], 2),
    }


async def under_load(server: RunningServer, dice: random.Random, finished: dict[str, str]) -> None:
    """Ask with eight programs and kill after a random time; what they saw finished goes into `finished`."""
    load = Load(server.url, dice, kill_after=1_000_000)
    asyncio.get_running_loop().call_later(dice.uniform(0.05, 3), load.time_to_kill.set)
    await load.run(server)
    finished |= {id: seen.whole for id, seen in load.seen.items() if seen.finished}


def check(data_dir: Path, finished: dict[str, str]) -> None:
    log = logged(data_dir)
    lost = [id for id, answer in finished.items() if log.get(id) != ("done", answer)]
    assert not lost, f"{len(lost)} finished answers are lost or changed: {lost[:3]}"


if __name__ == "__main__":
    main()
