"""kill -9 in the middle of the work: what a client saw finished is in the log, and what was running says so.

The real server in a process of its own answers programs with the scripted backend; it is killed at a seeded moment and
started again on the same data, several times. Of a power cut, what can be seen from outside: each commit is waited for.
"""

import asyncio
import json
import random
import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.server import API_KEY, RunningServer, running_server

HEADERS = {"Authorization": f"Bearer {API_KEY}"}
ROUNDS = 3
CLIENTS = 8
RUNNING = 5  # at once; the others wait
QUESTIONS = 10  # one after the other
LONG, LONGEST = 55, 90  # words of an answer after which the server may be killed: at 20 ms each, more than a second


@dataclass
class Seen:
    """What a client has seen of one answer."""

    prompt: str
    text: str = ""
    finished: bool = False

    @property
    def whole(self) -> str:
        """The answer that the script gives."""
        return f"You said: {self.prompt}"


@dataclass
class Load:
    """Clients that ask one thing after the other until the server is gone."""

    url: str
    dice: random.Random
    kill_after: int  # words of a running answer
    seen: dict[str, Seen] = field(default_factory=dict)  # by the exchange's id
    time_to_kill: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, server: RunningServer) -> None:
        """Load the server, kill it when its time has come, and wait until every client has noticed."""
        async with httpx.AsyncClient(base_url=self.url, headers=HEADERS, timeout=60) as http:
            clients = [asyncio.create_task(self._ask_on(http, number)) for number in range(CLIENTS)]
            await self.time_to_kill.wait()
            server.process.kill()
            server.process.wait()
            await asyncio.gather(*clients)

    async def _ask_on(self, http: httpx.AsyncClient, number: int) -> None:
        try:
            while True:
                words = self.dice.choice((3, 20, 60, LONGEST + 40))
                prompt = " ".join(f"c{number}w{word}" for word in range(words))
                await (self._stream(http, prompt) if self.dice.random() < 0.8 else self._wait(http, prompt))
        except httpx.TransportError:
            return

    async def _stream(self, http: httpx.AsyncClient, prompt: str) -> None:
        async with http.stream("POST", "/v1/chat/completions", json=_body(prompt, stream=True)) as response:
            assert response.status_code == 200
            seen = self.seen[response.headers["x-request-id"]] = Seen(prompt)
            words = 0
            async for event in _events(response):
                if event == "[DONE]":
                    seen.finished = True
                    return
                for choice in json.loads(event)["choices"]:
                    seen.text += choice["delta"].get("content") or ""
                    words += 1
                if words > self.kill_after:
                    self.time_to_kill.set()

    async def _wait(self, http: httpx.AsyncClient, prompt: str) -> None:
        response = await http.post("/v1/chat/completions", json=_body(prompt, stream=False))
        assert response.status_code == 200
        text = response.json()["choices"][0]["message"]["content"]
        self.seen[response.headers["x-request-id"]] = Seen(prompt, text, finished=True)


def _body(prompt: str, *, stream: bool) -> dict[str, object]:
    return {"model": "scripted", "messages": [{"role": "user", "content": prompt}], "stream": stream}


async def _events(response: httpx.Response) -> AsyncIterator[str]:
    async for line in response.aiter_lines():
        if line.startswith("data: "):
            yield line.removeprefix("data: ")


def loaded_server(data_dir: Path, *, ready: bool = True) -> AbstractContextManager[RunningServer]:
    return running_server(data_dir, ready=ready, max_concurrent_requests=RUNNING, max_waiting_requests=CLIENTS)


def logged(data_dir: Path) -> dict[str, tuple[str, str]]:
    """Status and answer of every exchange, by id."""
    with closing(sqlite3.connect(data_dir / "qdesk.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        rows = database.execute("SELECT id, status, answer FROM exchanges").fetchall()
        return {id: (status, answer) for id, status, answer in rows}


def check(load: Load, log: dict[str, tuple[str, str]]) -> None:
    """Compare what the clients saw with what is in the log after the restart."""
    finished = {id: seen for id, seen in load.seen.items() if seen.finished}
    broken = {id: seen for id, seen in load.seen.items() if not seen.finished}
    assert finished
    assert broken
    for id, seen in finished.items():
        assert log[id] == ("done", seen.whole) == ("done", seen.text)
    for id, seen in broken.items():
        if id not in log:
            assert not seen.text, "the row must be there before the first token"
            continue
        status, answer = log[id]
        assert status in ("interrupted", "done")  # done: the end was written, and the client was not told any more
        assert seen.whole.startswith(answer)
        assert status == "interrupted" or answer == seen.whole
    longest = max(broken, key=lambda id: len(broken[id].text))
    assert log[longest][1], "an answer that ran for more than a second has left none of its text"


async def test_no_finished_answer_is_lost_however_the_server_dies(tmp_path: Path) -> None:
    dice = random.Random(20261129)
    data_dir = tmp_path / "data"
    loads: list[Load] = []
    for _ in range(ROUNDS):
        with loaded_server(data_dir) as server:
            if loads:
                check(loads[-1], logged(data_dir))
            loads.append(Load(server.url, dice, kill_after=dice.randint(LONG, LONGEST)))
            await loads[-1].run(server)
    with loaded_server(data_dir) as server:
        log = logged(data_dir)
        for load in loads:
            check(load, log)
        assert {status for status, _ in log.values()} <= {"done", "interrupted"}
        async with httpx.AsyncClient(base_url=server.url, headers=HEADERS, timeout=60) as http:
            answer = await http.post("/", json={"prompt": "Are you well?"})
        assert answer.json()["response"] == "You said: Are you well?"


@pytest.mark.skipif(not shutil.which("strace"), reason="system calls are counted by strace; apt-get install strace")
def test_the_disk_is_waited_for_before_an_answer_begins_and_before_it_ends(tmp_path: Path) -> None:
    """As SQLite does with synchronous=FULL: once for the row that says that it runs, once for the one with its end."""
    with running_server() as server, httpx.Client(base_url=server.url, headers=HEADERS, timeout=60) as http:
        with waits_for_the_disk(server, tmp_path / "calls") as calls:
            for number in range(QUESTIONS):
                assert http.post("/", json={"prompt": f"number {number}"}).status_code == 200
        assert sum(calls) >= 2 * QUESTIONS


@contextmanager
def waits_for_the_disk(server: RunningServer, file: Path) -> Iterator[list[int]]:
    """How often the server's threads call fdatasync and fsync in the block; known after it."""
    command = ["strace", "-f", "-c", "-e", "trace=fdatasync,fsync", "-o", str(file), "-p", str(server.process.pid)]
    calls: list[int] = []
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as strace:
        assert strace.stderr
        if "attached" not in (said := strace.stderr.readline()):
            pytest.skip(f"system calls cannot be counted here: {said}")
        yield calls
        strace.send_signal(signal.SIGINT)
        strace.communicate()
    calls += [
        int(count) for count in re.findall(r"^ *[\d.]+ +[\d.]+ +\d+ +(\d+) .*sync$", file.read_text(), re.MULTILINE)
    ]
