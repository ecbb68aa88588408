"""How a job came to its end, from what became of its task. Knows no service."""

import asyncio

from loguru import logger

from engine.errors import BackendFailed, EngineError
from engine.job import Job
from engine.types import Status

Ending = tuple[Status, EngineError | None]


def how_it_ended(job: Job, task: asyncio.Task[None], told: Ending | None, limit_s: float) -> Ending:
    """`told`: as what it was told to end, if it was; `limit_s`: the most that a request may take."""
    if task.cancelled():
        return told or (Status.INTERRUPTED, None)
    match task.exception():
        case None:
            return Status.DONE, None
        case error if told:
            logger.opt(exception=error).warning("request {} failed while it was being ended", job.id)
            return told
        case TimeoutError() if job.age_s >= limit_s:
            return Status.TIMED_OUT, EngineError(f"The answer was not ready within {limit_s:g} seconds.")
        case EngineError() as error:
            return Status.FAILED, error
        case error:
            logger.opt(exception=error).error("request {} failed", job.id)
            return Status.FAILED, BackendFailed("The engine failed while it worked on this request.")
