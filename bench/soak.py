"""Load at twice the capacity for as long as wanted: pages and programs that ask, stop, reload and go away.

    make soak                      # half an hour, 200 pages and 50 programs
    python -m bench.soak --minutes 2 --pages 40 --programs 10

What the crowd does is in bench/crowd.py. A script plays the model, so that the server around it is what works. In the
end every question that was taken has one final row with its own answer, nothing runs or waits, and each figure is held
against its limit: those of somebody beside the crowd, which is slow itself (bench/watcher.py); what pages and programs
saw stands beside them. Ends with 1 where one of them is not met.
"""

import argparse
import asyncio
import os
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Set
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import psutil

from bench.crowd import WORD, Soak, people, soaked
from bench.report import save
from bench.watcher import watch
from engine.types import Status
from tests.server import API_KEY, RunningServer, bearer, running_server

CROWD = 30  # pages and programs for each place to run, and for each to wait
ENDED = {str(status) for status in Status if status.final}

LIVEZ, REFUSALS = "/livez, at most, s", "refusals, 99th percentile, s"
LAG, MEMORY = "event loop lag, 99th percentile, s", "memory, last third over second third"
LIMITS = {LIVEZ: 1.0, REFUSALS: 0.2, LAG: 0.1, MEMORY: 1.25}  # the most that each may be


def at_rest(server: RunningServer, within_s: float = 60) -> None:
    """Wait until nothing runs and nothing waits. Raises AssertionError."""
    until = time.monotonic() + within_s
    while (state := httpx.get(server.url + "/readyz", timeout=30).json())["running"] or state["waiting"]:
        assert time.monotonic() < until, f"not at rest {within_s:g} s after the last request: {state}"
        time.sleep(0.2)


def check_log(data_dir: Path, taken: Set[str]) -> str:
    """Every question that was taken has one final row with its own answer. How many of which status?

    `taken` are the words of those questions. Raises AssertionError.
    """
    statuses: Counter[str] = Counter()
    logged: Counter[str] = Counter()
    with closing(sqlite3.connect(f"file:{data_dir / 'qdesk.db'}?mode=ro", uri=True)) as database:
        for prompt, answer, status in database.execute("select prompt, answer, status from exchanges"):
            statuses[status] += 1
            logged.update(set(WORD.findall(prompt)))
            assert f"You said: {prompt}".startswith(answer), f"another's answer below {prompt[:50]!r}"
            assert status != "done" or answer == f"You said: {prompt}", answer
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert set(statuses) <= ENDED, f"left unfinished: {statuses}"
    assert not (missing := taken - logged.keys()), f"{len(missing)} questions that were taken are not in the log"
    assert set(logged.values()) <= {1}, "a question is in the log twice"
    return ", ".join(f"{status} {count}" for status, count in sorted(statuses.items()))


def lag_p99(server: RunningServer) -> float:
    """The bucket of the server's own histogram below which 99 % of the looks lie, in seconds."""
    text = httpx.get(server.url + "/metrics", headers=bearer(API_KEY), timeout=30).text
    buckets = re.findall(r'event_loop_lag_seconds_bucket\{le="([\d.]+|\+Inf)"\} ([\d.]+)', text)
    looks = float(buckets[-1][1])
    return next(float(limit.replace("+", "")) for limit, count in buckets if float(count) >= 0.99 * looks)


def figures_of(
    server: RunningServer, soak: Soak, memory: list[float], alive: list[float], refused: list[float]
) -> dict[str, float]:
    """The figures that have limits, when all is over. Raises AssertionError for what may not be at all.

    `memory` is the server's in the course of it, in bytes; `alive` and `refused` are what somebody beside the crowd saw
    (bench/watcher.py), in seconds.
    """
    lag_s = lag_p99(server)
    at_rest(server)
    assert not soak.faults, soak.faults[:5]
    assert refused, "nobody was refused: this was no load beyond the capacity"
    assert "Traceback" not in (said := server.output()), said[said.index("Traceback") - 500 :][:3000]
    return {
        LIVEZ: max(alive),
        REFUSALS: _percentile(refused, 0.99),
        LAG: lag_s,
        MEMORY: _growth(memory),
    }


def run(minutes: float, pages: int, programs: int) -> tuple[dict[str, float], dict[str, str]]:
    """Soak a server of its own: the figures, and what else there is to tell. Raises AssertionError as `figures_of`."""
    seconds = minutes * 60
    settings: dict[str, Any] = {
        "max_concurrent_requests": max(2, (pages + programs) // CROWD),
        "max_waiting_requests": max(2, (pages + programs) // CROWD),
        "max_requests_per_user": 1000,
        "drain_s": 30,
    }
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as beside:
        sessions = asyncio.run(people(Path(folder), pages))
        with running_server(Path(folder), **settings) as server:
            files = _files(server)
            watched = beside.submit(watch, server.url, bearer(), seconds)
            if hasattr(os, "nice"):
                os.nice(10)  # this process is a crowd of machines that would not take the server's processor
            soak, memory = asyncio.run(soaked(server, sessions, programs, seconds))
            alive, refused = watched.result()
            figures = figures_of(server, soak, memory, alive, refused)
            told = {
                "asked for, of what is taken": f"{soak.asked_over_taken:.1f} times",
                "rows in the log": check_log(server.data_dir, soak.taken),
                **{what: str(count) for what, count in sorted(soak.did.items())},
                "refusals, median, 95th and 99th percentile": _spread(refused),
                **{f"refusals of {whom}, as they saw them": _spread(took) for whom, took in soak.refused_s.items()},
                "the crowd's own lag, which is in what it saw": _spread(soak.own_lag_s),
                "memory at the end": f"{memory[-1] / 1e6:.0f} MB",
                "open files before and after": f"{files}, {_files(server)}",
            }
            return figures, told


def _files(server: RunningServer) -> int:
    """How many it has open."""
    return int(psutil.Process(server.process.pid).num_fds())


def _growth(memory: list[float]) -> float:
    third = len(memory) // 3
    return statistics.median(memory[-third:]) / statistics.median(memory[third : 2 * third]) if third else 1.0


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)] if values else 0.0


def _spread(seconds: list[float]) -> str:
    return (
        ", ".join(f"{_percentile(seconds, share) * 1000:.0f} ms" for share in (0.5, 0.95, 0.99)) + f" of {len(seconds)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--programs", type=int, default=50)
    asked, began = parser.parse_args(), datetime.now(UTC)
    figures, told = run(asked.minutes, asked.pages, asked.programs)
    over = {name for name, value in figures.items() if value > LIMITS[name]}
    rows = [
        f"| {name} | {value:.3f} | {LIMITS[name]:g}{', NOT MET' if name in over else ''} |"
        for name, value in figures.items()
    ]
    rows += [f"| {what} | {said} | |" for what, said in told.items()]
    save(began, "\n".join(["| what | came to | may be |", "|---|---|---|", *rows]), {"figures": figures, "told": told})
    sys.exit(bool(over))


if __name__ == "__main__":
    main()
