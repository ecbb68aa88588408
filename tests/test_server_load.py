"""The real server under a crowd: pages and programs beyond its capacity, and programs that go away at any moment.

`make soak` is the same crowd for half an hour, two hundred pages of it, on a machine that does nothing else. Here it is
two minutes of a small one, which mostly pauses: the file has a worker of its own (tests/conftest.py).
"""

import asyncio
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import httpx
import pytest

from bench.crowd import people, soaked
from bench.soak import LIMITS, MEMORY, at_rest, check_log, figures_of
from bench.watcher import is_refusal, watch
from tests.databases import in_a_thread
from tests.server import RunningServer, bearer, running_server

CHAT = "/v1/chat/completions"
SECONDS = 120  # of the crowd
PAGES, PROGRAMS = 12, 6
WORDS = (35, 85, 155, 285)  # of a question: as so few ask, their answers take the places for longer
LOOK_EVERY_S = 1.0
RUNNING, WAITING = 2, 2
# So many times what `make soak` allows on a machine of its own: here other tests take both processors at the same time,
# and a server that waits for one of them is not at fault. What would stop its loop stops it for seconds.
BUSY = 10


@pytest.fixture(scope="module")
def sessions() -> list[str]:
    return []


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, sessions: list[str]) -> Iterator[RunningServer]:
    data_dir: Path = tmp_path_factory.mktemp("load")
    sessions += in_a_thread(people(data_dir, PAGES))
    settings: dict[str, Any] = {"max_concurrent_requests": RUNNING, "max_waiting_requests": WAITING}
    with running_server(data_dir, **settings) as running:
        yield running


def test_two_minutes_at_twice_the_capacity_leave_nothing_undone(server: RunningServer, sessions: list[str]) -> None:
    """Everybody's answers are their own, each question that was taken has one final row, and nothing is left over.

    Meanwhile somebody beside them hears at once that the server lives, and that no place is free.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as beside:
        watched = beside.submit(watch, server.url, bearer(), SECONDS, LOOK_EVERY_S)
        soak, memory = asyncio.run(soaked(server, sessions, PROGRAMS, SECONDS, WORDS))
        figures = figures_of(server, soak, memory, *watched.result())
    assert "done" in check_log(server.data_dir, soak.taken)
    assert soak.asked_over_taken > 2
    allowed = {**{name: BUSY * most for name, most in LIMITS.items()}, MEMORY: LIMITS[MEMORY]}
    assert {name: figure for name, figure in figures.items() if figure > allowed[name]} == {}, figures


async def test_two_hundred_that_go_away_leave_room_for_the_next(server: RunningServer) -> None:
    dice = random.Random(7)

    async def go_away(http: httpx.AsyncClient) -> None:
        question = {"messages": [{"role": "user", "content": "long"}], "stream": dice.random() < 0.5}
        try:
            async with asyncio.timeout(dice.uniform(0.01, 1.5)):
                await http.post(CHAT, json=question, headers=bearer())
        except TimeoutError:
            return

    async with httpx.AsyncClient(base_url=server.url, limits=httpx.Limits(max_connections=None), timeout=60) as http:
        await asyncio.gather(*(go_away(http) for _ in range(200)))
        question = {"messages": [{"role": "user", "content": "hello"}]}
        async with asyncio.timeout(5):
            while is_refusal(answer := await http.post(CHAT, json=question, headers=bearer())):
                pass  # until those who have gone are noticed
    assert answer.json()["choices"][0]["message"]["content"] == "You said: hello"
    at_rest(server)
    assert server.rows("select count(*) from exchanges where status = 'disconnected'") > [(0,)]
    assert server.rows("select count(*) from exchanges where status in ('queued', 'running')") == [(0,)]
