"""The time of day is set under the real server, while it answers: two hours ahead, two hours back, forty days ahead.

libfaketime tells the server the time. Retention looks when it gets SIGUSR1, instead of after an hour or a day.
"""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from tests.server import RunningServer, eventually, running_server
from tests.ui.test_shutdown import stream

LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
LOOKS_WHEN_TOLD = """
import asyncio, signal, types
import main, ui.serving

async def until_told(seconds):
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    signal.signal(signal.SIGUSR1, lambda *_: loop.call_soon_threadsafe(told.set))
    await told.wait()

ui.serving.asyncio = types.SimpleNamespace(**vars(asyncio) | {"sleep": until_told})
main.main()
"""
TEXT = " ".join(f"word{number}" for number in range(60))  # more than a second

pytestmark = pytest.mark.skipif(
    LIBRARY is None, reason="clocks are set by libfaketime; on Debian: apt-get install faketime"
)


@dataclass(frozen=True)
class Clock:
    """The server's time of day."""

    file: Path

    def set(self, ahead: str) -> None:
        """By so much from the right time, as libfaketime writes it: "+2h"."""
        new = self.file.with_suffix(".new")
        new.write_text(ahead)
        new.replace(self.file)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    clock = Clock(tmp_path / "clock")
    clock.set("+0")
    return clock


@pytest.fixture
def server(clock: Clock) -> Iterator[RunningServer]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LD_PRELOAD", str(LIBRARY))
        environment.setenv("FAKETIME_TIMESTAMP_FILE", str(clock.file))
        for name in ("FAKETIME_NO_CACHE", "FAKETIME_DONT_FAKE_MONOTONIC", "NO_FAKE_STAT"):
            environment.setenv(name, "1")
        with running_server(program=("-c", LOOKS_WHEN_TOLD), forged=False, retention_days=30) as running:
            yield running


def retention_looks(server: RunningServer) -> None:
    """Return when it has, and has found that the clock was set."""
    said = "the clock was set, so nothing is deleted for its age"
    before = server.output().count(said)
    server.process.send_signal(signal.SIGUSR1)
    eventually(lambda: server.output().count(said) > before)


def is_signed_in(browser: httpx.Client) -> bool:
    return browser.get("/account").status_code == 200


def answered_while(server: RunningServer, clock: Clock, ahead: str) -> None:
    """The clock is set while four programs are answered, who do not feel it."""
    with ExitStack() as stack:
        answers = [stream(server, TEXT, stack) for _ in range(4)]
        eventually(lambda: {server.status_of(id) for id, _ in answers} == {"running"})
        clock.set(ahead)
        for id, answer in answers:
            *events, done = answer.read().decode().strip().split("\n\n")
            chunks = [json.loads(event.removeprefix("data: ")) for event in events]
            said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
            assert (said, done) == (f"You said: {TEXT}", "data: [DONE]")
            ((status, *times),) = server.rows(
                "select status, queued_at, started_at, first_token_at, finished_at from exchanges where id = ?", id
            )
            assert status == "done"
            queued, *_, finished = moments = [datetime.fromisoformat(time) for time in times]
            assert moments == sorted(moments)
            assert (finished - queued).total_seconds() < 60


def test_a_clock_that_is_set_costs_no_answer_and_no_row(server: RunningServer, clock: Clock) -> None:
    with server.sign_in() as first:
        for ahead in ("+2h", "-2h"):
            answered_while(server, clock, ahead)
            assert is_signed_in(first)
            with server.sign_in() as browser:
                assert is_signed_in(browser)
        answered_while(server, clock, "+40d")
        assert not is_signed_in(first)  # sessions last thirty days
        with server.sign_in() as later:
            retention_looks(server)  # as it would at any time
            clock.set("+0")
            retention_looks(server)
            assert is_signed_in(later)
    assert server.rows("select status, count(*) from exchanges group by status") == [("done", 12)]
    ready = httpx.get(server.url + "/readyz").json()
    assert (ready["status"], ready["running"], ready["waiting"]) == ("ready", 0, 0)
    assert "Traceback" not in server.output()
