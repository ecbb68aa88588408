"""Load at twice the capacity for as long as wanted: pages and programs that ask, stop, reload and go away.

    make soak                      # half an hour, 200 pages and 50 programs
    python -m bench.soak --minutes 2 --pages 40 --programs 10

A script plays the model, so that the server around it is what works. Every question has a word of its own, which its
answer repeats: whoever sees another's is told. In the end every question that was taken has one final row, nothing runs
or waits, and each figure is held against its limit. Ends with 1 where one of them is not met.
"""

import argparse
import asyncio
import os
import random
import re
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import psutil

from bench.page import Page
from engine.types import Status, new_id
from storage import Store
from tests.databases import SECRET
from tests.server import API_KEY, RunningServer, bearer, running_server
from ui.seal import Seal

CROWD = 30  # pages and programs for each place to run, and for each to wait
THINK_S, RETRY_S, BETWEEN_S = 31.0, 14.0, 11.0  # at most, a person's after an answer and a refusal, and a program's
# pauses: together they ask for a bit more than twice of what these places answer
WORD = re.compile(r"nonce[0-9a-f]{32}")
ENDED = {str(status) for status in Status if status.final}
CHAT = "/v1/chat/completions"

LIMITS = {  # the most that each figure may be
    "/livez, at most, s": 1.0,
    "refusals, 99th percentile, s": 0.2,
    "event loop lag, 99th percentile, s": 0.1,
    "memory, last third over second third": 1.25,
}


@dataclass
class Soak:
    """What has happened so far, and the dice that decide what happens next."""

    server: RunningServer
    until_s: float  # time.monotonic()
    dice: random.Random
    haste: float = 1.0  # all pauses are so many times shorter
    taken: set[str] = field(default_factory=set)  # words of questions that the server has taken
    did: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def asked_over_taken(self) -> float:
        """How many times what is taken is asked for."""
        taken = self.did["pages answered"] + self.did["programs answered"]
        return 1 + (self.did["pages refused"] + self.did["programs refused"]) / max(1, taken)

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.until_s

    def word(self) -> str:
        return f"nonce{new_id()}"

    def question(self, word: str) -> str:
        return "\n".join(["soak", " ".join([word] * self.dice.choice((1, 5, 20, 60)))])

    def check(self, seen: str, own: set[str]) -> None:
        """Every word in a text is the reader's own."""
        if foreign := set(WORD.findall(seen)) - own:
            self.faults.append(f"somebody saw the words of others: {sorted(foreign)[:3]}")

    async def pause(self, most_s: float) -> None:
        await asyncio.sleep(self.dice.uniform(0, most_s) / self.haste)


async def page(soak: Soak, http: httpx.AsyncClient, session: str) -> None:
    """A person with one tab: asks, reads or stops or reloads, thinks, begins anew now and then."""
    own: set[str] = set()
    tab = Page(http, session, lambda frame: soak.check(frame, own))
    await soak.pause(THINK_S)
    await tab.open()
    while not soak.over:
        word = soak.word()
        own.add(word)
        if await tab.ask(soak.question(word)):
            soak.did["pages refused"] += 1
            await soak.pause(RETRY_S)
            continue
        soak.taken.add(word)
        soak.did["pages answered"] += 1
        match soak.dice.random():
            case luck if luck < 0.15:
                await soak.pause(1)
                await tab.stop()
                soak.did["stopped"] += 1
            case luck if luck < 0.3:
                await soak.pause(1)
                await tab.open(f"/c/{tab.conversation}")
                soak.did["reloaded"] += 1
        await tab.until_answered()
        await soak.pause(THINK_S)
        if soak.dice.random() < 0.3:
            await tab.open()
    await tab.close()


async def program(soak: Soak, http: httpx.AsyncClient) -> None:
    """A program that asks one thing after the other, half of it streamed, and hangs up on every fifth."""
    while not soak.over:
        word = soak.word()
        body = {"messages": [{"role": "user", "content": soak.question(word)}], "stream": soak.dice.random() < 0.5}
        patience_s = soak.dice.uniform(0.05, 2) if soak.dice.random() < 0.2 else 120
        try:
            async with asyncio.timeout(patience_s), http.stream("POST", CHAT, json=body, headers=bearer()) as response:
                if response.status_code == 200:
                    soak.taken.add(word)
                    soak.did["programs answered"] += 1
                soak.check((await response.aread()).decode(), {word})
                if response.status_code != 200:
                    assert is_refusal(response), response.text
                    soak.did["programs refused"] += 1
        except TimeoutError:
            soak.did["hung up"] += 1
        await soak.pause(BETWEEN_S)


def is_refusal(response: httpx.Response) -> bool:
    """Whether every place is taken."""
    return response.status_code == 503 and response.json()["error"]["code"] == "queue_full"


def watch(url: str, seconds: float) -> tuple[list[float], list[float]]:
    """From a process of its own: how long /livez took, and how long each refusal took, in seconds."""
    alive, refused = [], []
    until = time.monotonic() + seconds
    with httpx.Client(base_url=url, timeout=60) as http:
        while time.monotonic() < until:
            began = time.monotonic()
            http.get("/livez").raise_for_status()
            alive.append(time.monotonic() - began)
            began = time.monotonic()
            asked = http.post(CHAT, json={"messages": [{"role": "user", "content": "x"}]}, headers=bearer())
            if is_refusal(asked):
                refused.append(time.monotonic() - began)
            time.sleep(0.25)
    return alive, refused


async def soaked(
    server: RunningServer, sessions: list[str], programs: int, seconds: float, haste: float = 1.0
) -> tuple[Soak, list[float]]:
    """Let everybody do as they do for so long; also the server's memory every few seconds, in bytes."""
    soak = Soak(server, time.monotonic() + seconds, random.Random(7), haste)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=100)
    memory: list[float] = []

    async def weigh() -> None:
        while not soak.over:
            memory.append(_memory(server))
            await asyncio.sleep(min(5.0, seconds / 12))

    async with httpx.AsyncClient(base_url=server.url, timeout=120, limits=limits) as http:
        everybody: list[Awaitable[None]] = [page(soak, http, session) for session in sessions]
        everybody += [program(soak, http) for _ in range(programs)]
        everybody.append(weigh())
        await asyncio.gather(*everybody)
    return soak, memory


async def people(data_dir: Path, count: int) -> list[str]:
    """Accounts with a session each, put into the database of a server that does not run; their cookies."""
    store, seal = Store(f"sqlite:///{data_dir / 'qdesk.db'}"), Seal(SECRET.encode())
    store.open()
    cookies = []
    for number in range(count):
        user = await store.users.create(f"person {number}", "no password", "staff")
        assert user is not None
        cookies.append(cookie := new_id())
        await store.sessions.create(user.id, seal("session", cookie), "soak", datetime.now(UTC) + timedelta(days=1))
    store.close()
    return cookies


def at_rest(server: RunningServer, within_s: float = 60) -> None:
    """Wait until nothing runs and nothing waits. Raises AssertionError."""
    until = time.monotonic() + within_s
    while (state := httpx.get(server.url + "/readyz", timeout=30).json())["running"] or state["waiting"]:
        assert time.monotonic() < until, f"not at rest {within_s:g} s after the last request: {state}"
        time.sleep(0.2)


def check_log(server: RunningServer, soak: Soak) -> str:
    """Every question that was taken has one final row with its own answer. Raises AssertionError."""
    statuses: Counter[str] = Counter()
    logged: Counter[str] = Counter()
    with closing(sqlite3.connect(f"file:{server.data_dir / 'qdesk.db'}?mode=ro", uri=True)) as database:
        for prompt, answer, status in database.execute("select prompt, answer, status from exchanges"):
            statuses[status] += 1
            logged.update(set(WORD.findall(prompt)))
            assert f"You said: {prompt}".startswith(answer), f"another's answer below {prompt[:50]!r}"
            assert status != "done" or answer == f"You said: {prompt}", answer
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert set(statuses) <= ENDED, f"left unfinished: {statuses}"
    assert not (missing := soak.taken - logged.keys()), f"{len(missing)} questions that were taken are not in the log"
    assert set(logged.values()) <= {1}, "a question is in the log twice"
    return ", ".join(f"{status} {count}" for status, count in sorted(statuses.items()))


def lag_p99(server: RunningServer) -> float:
    """The bucket of the server's own histogram below which 99 % of the looks lie, in seconds."""
    text = httpx.get(server.url + "/metrics", headers=bearer(API_KEY), timeout=30).text
    buckets = re.findall(r'event_loop_lag_seconds_bucket\{le="([\d.]+|\+Inf)"\} ([\d.]+)', text)
    looks = float(buckets[-1][1])
    return next(float(limit.replace("+", "")) for limit, count in buckets if float(count) >= 0.99 * looks)


def run(minutes: float, pages: int, programs: int) -> tuple[dict[str, float], str]:
    """Soak a server of its own: the figures, and what happened in words. Raises AssertionError for what may not be."""
    seconds = minutes * 60
    settings: dict[str, Any] = {
        "max_concurrent_requests": max(2, (pages + programs) // CROWD),
        "max_waiting_requests": max(2, (pages + programs) // CROWD),
        "max_requests_per_user": 1000,
        "drain_s": 30,
    }
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, mp_context=get_context("spawn")) as watcher:
        sessions = asyncio.run(people(Path(folder), pages))
        with running_server(Path(folder), **settings) as server:
            files = _files(server)
            watched: Future[tuple[list[float], list[float]]] = watcher.submit(watch, server.url, seconds)
            if hasattr(os, "nice"):
                os.nice(10)  # this process is a crowd of machines that would not take the server's processor
            soak, memory = asyncio.run(soaked(server, sessions, programs, seconds))
            alive, refused = watched.result()
            lag_s = lag_p99(server)
            at_rest(server)
            log = check_log(server, soak)
            assert not soak.faults, soak.faults[:5]
            assert refused, "nobody was refused: this was no load beyond the capacity"
            assert soak.asked_over_taken > 2, f"asked for is {soak.asked_over_taken:.1f} times what is taken"
            assert "Traceback" not in (said := server.output()), said[said.index("Traceback") - 500 :][:3000]
            figures = {
                "/livez, at most, s": max(alive),
                "refusals, 99th percentile, s": _percentile(refused, 0.99),
                "event loop lag, 99th percentile, s": lag_s,
                "memory, last third over second third": _growth(memory),
            }
            words = f"asked for: {soak.asked_over_taken:.1f} times what is taken; {dict(soak.did)}; rows: {log}; "
            usual, late = (_percentile(refused, share) for share in (0.5, 0.95))
            words += f"refusals, median and 95th percentile, s: {usual:.3f}, {late:.3f}; "
            words += f"memory {memory[-1] / 1e6:.0f} MB at the end; files open before {files}, after {_files(server)}"
            return figures, words


def _memory(server: RunningServer) -> float:
    """Resident, in bytes."""
    return float(psutil.Process(server.process.pid).memory_info().rss)


def _files(server: RunningServer) -> int:
    """How many it has open."""
    return int(psutil.Process(server.process.pid).num_fds())


def _growth(memory: list[float]) -> float:
    third = len(memory) // 3
    return statistics.median(memory[-third:]) / statistics.median(memory[third : 2 * third]) if third else 1.0


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)] if values else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--programs", type=int, default=50)
    asked = parser.parse_args()
    figures, words = run(asked.minutes, asked.pages, asked.programs)
    print(words)
    for name, value in figures.items():
        print(f"{name}: {value:.3f} (may be {LIMITS[name]:g}) {'' if value <= LIMITS[name] else 'NOT MET'}")
    sys.exit(any(value > LIMITS[name] for name, value in figures.items()))


if __name__ == "__main__":
    main()
