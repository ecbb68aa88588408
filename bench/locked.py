"""The database locked by another program for half a minute, under both policies at once, while programs ask.

    python -m bench.locked                 # 30 s
    python -m bench.locked --seconds 120

With QDESK_ON_LOG_FAILURE=refuse what is under way goes on to its end, and what is new is refused with a sentence; with
`warn` everything is answered. Both live and show a page meanwhile, are ready by themselves afterwards, and have every
answer in the log. A script plays the model. Ends with a traceback where that is not so, and with 1 where a look or a
refusal took longer than AT_ONCE_S. The tests hold the lock only until it is felt (tests/test_server_trouble.py).
"""

import argparse
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import httpx

from bench.report import save
from bench.watcher import CHAT
from tests.server import RunningServer, bearer, eventually, running_server

PROGRAMS = 4  # for each server; they ask one thing after the other
FELT_S = 5.0  # a lock is known to the server after this, and that it is over as well
AT_ONCE_S = 1.0  # the most that a look may take, and a refusal when the lock is known
UNDER_WAY = " ".join(f"word{number}" for number in range(1000))  # twenty seconds


@dataclass
class Seen:
    """One server under its policy, and what was seen of it. Seconds."""

    server: RunningServer
    answered: set[str] = field(default_factory=set)  # ids
    refused: list[float] = field(default_factory=list)  # how long it took since the lock is known
    looks: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.http = httpx.Client(base_url=self.server.url, timeout=120)

    def ask(self, text: str) -> httpx.Response:
        question = {"messages": [{"role": "user", "content": text}]}
        answer = self.http.post(CHAT, json=question, headers=bearer())
        if answer.status_code == 200:
            self.answered.add(answer.json()["id"].removeprefix("chatcmpl-"))
        else:
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "log_failed"), answer.text
        return answer

    def ask_on(self, known: threading.Event, over: threading.Event) -> None:
        while not over.wait(0.1):
            was_known, began = known.is_set(), time.monotonic()
            if self.ask("hello").status_code != 200 and was_known:
                self.refused.append(time.monotonic() - began)

    def look_on(self, over: threading.Event) -> None:
        while not over.wait(0.25):
            for path in ("/livez", "/login"):
                began = time.monotonic()
                assert self.http.get(path).status_code == 200
                self.looks.append(time.monotonic() - began)

    def is_ready(self) -> bool:
        return self.http.get("/readyz").status_code == 200

    def runs(self) -> bool:
        return bool(self.server.rows("select 1 from exchanges where status = 'running'"))

    def check_log(self) -> None:
        unfinished = "select count(*) from exchanges where status in ('queued', 'running')"
        eventually(lambda: self.done() == self.answered and self.server.rows(unfinished) == [(0,)])
        assert self.server.rows("pragma integrity_check") == [("ok",)]

    def done(self) -> set[str]:
        return {id for (id,) in self.server.rows("select id from exchanges where status = 'done'")}


@contextmanager
def locked(*servers: RunningServer) -> Iterator[None]:
    """Another program in the middle of a change in the database of each."""
    with ExitStack() as stack:
        for server in servers:
            database = sqlite3.connect(server.data_dir / "qdesk.db", isolation_level=None, timeout=30)
            stack.enter_context(closing(database))
            database.execute("BEGIN IMMEDIATE")
        yield


def run(refusing: Seen, warning: Seen, seconds: float) -> float:
    """Hold the lock for so long; how long after it the refusing server was ready again. Raises AssertionError."""
    known, over = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2 * (PROGRAMS + 2)) as threads, ExitStack() as stack:
        stack.callback(over.set)
        under_way = [threads.submit(one.ask, UNDER_WAY) for one in (refusing, warning)]
        eventually(lambda: refusing.runs() and warning.runs())
        with locked(refusing.server, warning.server):
            until = time.monotonic() + seconds
            beside = [threads.submit(one.look_on, over) for one in (refusing, warning)]
            beside += [threads.submit(one.ask_on, known, over) for one in (refusing, warning) for _ in range(PROGRAMS)]
            eventually(lambda: not refusing.is_ready(), within_s=FELT_S)
            known.set()
            while time.monotonic() < until or not all(answer.done() for answer in under_way):
                assert (refusing.is_ready(), warning.is_ready()) == (False, True)
                time.sleep(0.5)
            assert [answer.result().status_code for answer in under_way] == [200, 200]
            answered_meanwhile = len(warning.answered)
            over.set()
            for work in beside:
                work.result()
        released = time.monotonic()
        eventually(refusing.is_ready, within_s=FELT_S)
        ready_s = time.monotonic() - released
    assert len(refusing.answered) == 1, "something new was answered that the log could not take"
    assert refusing.refused
    assert not warning.refused
    assert answered_meanwhile > PROGRAMS
    return ready_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    asked, began = parser.parse_args(), datetime.now(UTC)
    with running_server(on_log_failure="refuse") as first, running_server(on_log_failure="warn") as second:
        refusing, warning = Seen(first), Seen(second)
        ready_s = run(refusing, warning, asked.seconds)
        for one in (refusing, warning):
            one.check_log()
    refusal_s, look_s = max(refusing.refused), max(*refusing.looks, *warning.looks)
    figures = {
        "answered by the refusing one (it was under way)": len(refusing.answered),
        "refused": len(refusing.refused),
        "a refusal took at most, s": round(refusal_s, 3),
        "answered by the other one, all in the log": len(warning.answered),
        "/livez and a page took at most, s": round(look_s, 3),
        "ready after the lock, s": round(ready_s, 2),
    }
    rows = [f"| {what} | {value} |" for what, value in figures.items()]
    save(began, "\n".join([f"| locked for {asked.seconds:g} s | came to |", "|---|---|", *rows]), figures)
    sys.exit(max(refusal_s, look_s) > AT_ONCE_S)


if __name__ == "__main__":
    main()
