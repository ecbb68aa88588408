"""Ending an answer that nobody has looked at for a while. Knows no service; lives on the event loop alone."""

import asyncio
from collections.abc import Callable

from engine.job import Job
from engine.types import Status


def end_when_abandoned(job: Job, after_s: float, end: Callable[[Job, Status], None]) -> None:
    """End a job that nobody has followed for `after_s`. Most programs that go away end theirs at once.

    `end` does nothing to a job that has ended already.
    """
    loop = asyncio.get_running_loop()

    def countdown() -> asyncio.TimerHandle:
        return loop.call_later(after_s, end, job, Status.DISCONNECTED)

    timer = countdown()

    def watched(by_somebody: bool) -> None:
        nonlocal timer
        timer.cancel()
        if not by_somebody and job.finished_s is None:
            timer = countdown()

    job.on_watched = watched
