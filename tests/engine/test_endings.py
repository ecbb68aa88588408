"""A thousand requests that end in every way at any moment, from a seed: nothing is left, each row is final once."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing

import pytest
from loguru import logger

from engine.errors import EngineError
from engine.gate import Limits
from engine.job import Job
from engine.service import ChatService
from engine.types import Source, Status
from tests.engine.kit import MemoryRecorder, UnrulyBackend, assert_empty, question, service_on

PROMPTS = ["hello"] * 6 + ["long", "fail before", "fail midway", "crash", "stuck", "no end", "sloppy", "unreadable"]
REQUESTS = 1000


class Crowd:
    """People who ask, watch for a while, stop, leave, or have their asking itself broken off."""

    def __init__(self, service: ChatService, seed: int) -> None:
        self.service = service
        self.dice = random.Random(seed)
        self.jobs: list[Job] = []
        self.seen: dict[str, Status] = {}  # how it ended, by those who watched to the end
        self.refused = 0

    async def request(self) -> None:
        prompt, person = self.dice.choice(PROMPTS), self.dice.choice(["ada", "bob", "cyd", None])
        source: Source = self.dice.choice(["page", "api"])
        for _ in range(self.dice.randrange(50)):
            await asyncio.sleep(0)
        try:
            job = await self.service.submit(question(prompt, person, source))
        except EngineError:
            self.refused += 1
            return
        self.jobs.append(job)
        patience = self.dice.choice([0, 0, 1, 3, 10, 10_000])
        if patience:
            await self.watch(job, patience)
        if job.request.source == "api" or self.dice.random() < 0.5:  # the others are left alone, as a closed page does
            self.service.end(job, self.dice.choice([Status.STOPPED, Status.CANCELLED, Status.DISCONNECTED]))
        if self.dice.random() < 0.5:
            await job.closed()

    async def watch(self, job: Job, patience: int) -> None:
        async with aclosing(job.follow()) as updates:
            async for update in updates:
                assert len(self.service.gate.running) <= 8
                patience -= 1
                if update.status.final:
                    self.seen[job.id] = update.status
                if not patience:
                    return


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Hundreds of failures are meant here; writing each with its traceback takes longer than all the rest."""
    logger.disable("engine")
    yield
    logger.enable("engine")


async def test_a_thousand_random_endings_leave_nothing_behind() -> None:
    backend = UnrulyBackend()
    service = await service_on(
        backend,
        max_concurrent_requests=8,
        max_waiting_requests=20,
        max_requests_per_user=12,
        abandon_after_s=0.01,
        request_timeout_s=0.1,
        drain_s=0.05,
    )
    crowd = Crowd(service, seed=7)
    for start in range(0, REQUESTS, 50):
        asking = [asyncio.create_task(crowd.request()) for _ in range(50)]
        for task in crowd.dice.sample(asking, 5):
            asyncio.get_running_loop().call_later(crowd.dice.random() * 0.05, task.cancel)
        service.change_limits(Limits(crowd.dice.randint(1, 8), 20, 12))
        if start < REQUESTS - 50:
            await asyncio.wait(asking)
    service.change_limits(Limits(8, 1000, 1000))
    crowd.jobs.append(await service.submit(question("stuck")))
    await service.stop()  # in the midst of the last fifty
    await asyncio.wait(asking)

    assert_empty(service)
    recorder = service.recorder
    assert isinstance(recorder, MemoryRecorder)
    for job in crowd.jobs:
        statuses = recorder.statuses(job)
        assert [status.final for status in statuses] == [False] * (len(statuses) - 1) + [True]
        assert job.status is statuses[-1] is crowd.seen.get(job.id, statuses[-1])
    assert len(service.recent) == len(recorder.rows)
    assert service.refused.total() == crowd.refused > 0
    assert set(Counter(outcome.status for outcome in service.recent)) == {status for status in Status if status.final}
