"""Handing rows to whoever writes them down, so that a recorder's failure is logged and never becomes a request's.

Knows nothing of SQL, and nothing of how a request goes.
"""

import asyncio
from typing import Protocol

from loguru import logger

from engine.types import Exchange

WRITE_S = 5.0  # `settled` waits no longer than this


class Recorder(Protocol):
    """Where exchanges are written down. Never blocks; `None` from `health` means that writing works."""

    def record(self, exchange: Exchange) -> "asyncio.Future[None]": ...

    def health(self) -> str | None: ...


class Recording:
    def __init__(self, recorder: Recorder, *, goes_on: bool = False) -> None:
        """`goes_on`: answers do not wait for a log that is known to be in trouble."""
        self.recorder, self._goes_on = recorder, goes_on

    def write(self, exchange: Exchange) -> "asyncio.Future[None] | None":
        """Hand the row over. The future ends when it is written, or cannot be; None: it was not even taken."""
        try:
            writing = self.recorder.record(exchange)
        except Exception as error:
            logger.opt(exception=error).error("exchange {} is not written", exchange.id)
            return None
        writing.add_done_callback(lambda writing: _log_failure(writing, exchange.id))
        return writing

    async def settled(self, writing: "asyncio.Future[None] | None") -> bool:
        """Whether a row that was handed over is written; False when that has failed, or has taken WRITE_S."""
        if writing is None:
            return False
        if not writing.done() and not (self._goes_on and self.recorder.health()):
            await asyncio.wait([writing], timeout=WRITE_S)
        return writing.done() and not writing.cancelled() and writing.exception() is None


def _log_failure(writing: "asyncio.Future[None]", id: str) -> None:
    if not writing.cancelled() and (error := writing.exception()):
        logger.error("exchange {} is not written: {!r}", id, error)
