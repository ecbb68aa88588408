"""The time of day is set under the real server, while it answers: two hours ahead, two hours back, forty days ahead.

libfaketime tells the server the time. Retention looks when it gets SIGUSR1, instead of after an hour or a day.
"""

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from email.utils import parsedate_to_datetime
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
    if seconds < 3600:  # not retention's
        return await asyncio.sleep(seconds)
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    signal.signal(signal.SIGUSR1, lambda *_: loop.call_soon_threadsafe(told.set))
    await told.wait()

ui.serving.asyncio = types.SimpleNamespace(**vars(asyncio) | {"sleep": until_told})
main.main()
"""
HOUR_S = 3600.0
TEXT = " ".join(f"word{number}" for number in range(150))  # three seconds at least

pytestmark = pytest.mark.skipif(
    LIBRARY is None, reason="clocks are set by libfaketime; on Debian: apt-get install faketime"
)


@pytest.fixture
def clock(tmp_path: Path) -> Path:
    """What is in this file is how far the server's time of day is ahead, as libfaketime writes it: +7200."""
    clock = tmp_path / "clock"
    clock.write_text("+0")
    return clock


@pytest.fixture
def server(clock: Path) -> Iterator[RunningServer]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("LD_PRELOAD", str(LIBRARY))
        environment.setenv("FAKETIME_TIMESTAMP_FILE", str(clock))
        environment.setenv("FAKETIME_CACHE_DURATION", "0")  # it looks once a second
        for name in ("FAKETIME_DONT_FAKE_MONOTONIC", "NO_FAKE_STAT"):
            environment.setenv(name, "1")
        environment.setenv("FAKETIME_FORCE_MONOTONIC_FIX", "0")  # else Python's threads wait for each other in circles
        with running_server(program=("-c", LOOKS_WHEN_TOLD), forged=False, retention_days=30) as running:
            yield running


def set_clock(server: RunningServer, clock: Path, ahead_s: float) -> None:
    """Return when the server goes by it."""
    new = clock.with_suffix(".new")
    new.write_text(f"{ahead_s:+.0f}")
    new.replace(clock)
    eventually(lambda: abs(time_of_day(server) - time.time() - ahead_s) < 60)


def time_of_day(server: RunningServer) -> float:
    return parsedate_to_datetime(httpx.get(server.url + "/livez").headers["date"]).timestamp()


def retention_looks(server: RunningServer) -> None:
    """Return when it has, and has found that the clock was set."""
    said = "the clock was set, so nothing is deleted for its age"
    before = server.output().count(said)
    server.process.send_signal(signal.SIGUSR1)
    eventually(lambda: server.output().count(said) > before)


def is_signed_in(browser: httpx.Client) -> bool:
    return browser.get("/account").status_code == 200


def answered_while(server: RunningServer, clock: Path, ahead_s: float) -> None:
    """The clock is set while four programs are answered, who do not feel it."""
    with ExitStack() as stack:
        answers = [stream(server, TEXT, stack) for _ in range(4)]
        eventually(lambda: {server.status_of(id) for id, _ in answers} == {"running"})
        set_clock(server, clock, ahead_s)
        assert {server.status_of(id) for id, _ in answers} == {"running"}
        for id, answer in answers:
            *events, done = answer.read().decode().strip().split("\n\n")
            chunks = [json.loads(event.removeprefix("data: ")) for event in events]
            said = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks)
            assert (said, done) == (f"You said: {TEXT}", "data: [DONE]")
            ((status, *times),) = server.rows(
                "select status, queued_at, started_at, first_token_at, finished_at from exchanges where id = ?", id
            )
            assert status == "done"
            queued, *_, finished = moments = [datetime.fromisoformat(moment) for moment in times]
            assert moments == sorted(moments)
            assert (finished - queued).total_seconds() < 60


def test_a_clock_that_is_set_costs_no_answer_and_no_row(server: RunningServer, clock: Path) -> None:
    with server.sign_in() as first:
        for ahead_s in (2 * HOUR_S, -2 * HOUR_S):
            answered_while(server, clock, ahead_s)
            assert is_signed_in(first)
            with server.sign_in() as browser:
                assert is_signed_in(browser)
        answered_while(server, clock, 40 * 24 * HOUR_S)
        assert not is_signed_in(first)  # sessions last thirty days
        with server.sign_in() as later:
            retention_looks(server)  # as it would at any time
            set_clock(server, clock, 0)
            retention_looks(server)
            assert is_signed_in(later)
    assert server.rows("select status, count(*) from exchanges group by status") == [("done", 12)]
    ready = httpx.get(server.url + "/readyz").json()
    assert (ready["status"], ready["running"], ready["waiting"]) == ("ready", 0, 0)
    assert "Traceback" not in server.output()
