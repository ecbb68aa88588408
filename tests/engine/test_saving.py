"""What of a running answer is in its row meanwhile."""

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from engine.backends.scripted import ScriptedBackend
from engine.types import ChatRequest, Delta, Event, Status
from tests.engine.kit import MemoryRecorder, ended, question, service_on


class Clock:
    """A clock in the place of the module `time`."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def monotonic(self) -> float:
        return self.now


class Speaker(ScriptedBackend):
    """Says a word every quarter of a second, by this clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(pause_s=0)
        self.clock = clock

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        async with aclosing(super().stream(request)) as events:
            async for event in events:
                self.clock.now += 0.25 * isinstance(event, Delta)
                yield event


async def test_the_text_so_far_is_saved_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    service = await service_on(Speaker(clock := Clock()))
    monkeypatch.setattr("engine.service.time", clock)
    job = await service.submit(question(" ".join(["word"] * 38)))  # forty words with "You said:"
    assert (await ended(job)).status is Status.DONE
    assert isinstance(service.recorder, MemoryRecorder)
    running = [row for row in service.recorder.rows[job.id] if row.status is Status.RUNNING]
    assert [len(row.answer.split()) for row in running] == [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40]
