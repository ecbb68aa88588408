"""An answer that is told from its row in the log: one that has ended, or that another process gives just now.

It has no logprobs: they are not kept.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from engine.errors import EngineError
from engine.job import Update
from engine.types import Exchange, Logprob, Status
from ui.desk import Desk
from ui.elsewhere import followed


class Replay:
    def __init__(self, exchange: Exchange, desk: Desk) -> None:
        self._desk = desk
        self.exchange = exchange
        self.id, self.model, self.queued_at, self.text = (
            exchange.id,
            exchange.model,
            exchange.queued_at,
            exchange.answer,
        )
        self.logprobs: list[tuple[Logprob, ...]] = []

    async def follow(self) -> AsyncGenerator[Update, None]:
        """One update that holds it all; before it, while it is under way elsewhere, what is new of it in the log."""
        row, told = self.exchange, 0
        if row.status is Status.RUNNING:
            yield _update(row, told)
            told = len(row.answer)
        async with aclosing(followed(self._desk, row)) as rows:
            async for row in rows:
                if row.status is Status.RUNNING and len(row.answer) > told:
                    yield _update(row, told)
                    told = len(row.answer)
        self.text = row.answer
        yield _update(row, told)


def _update(row: Exchange, told: int) -> Update:
    """What the row says beyond the first `told` characters of the answer."""
    new = row.answer[told:]
    return Update(
        seq=1,
        deltas=(new,) if new else (),
        status=row.status,
        prompt_tokens=row.prompt_tokens,
        cached_tokens=row.cached_tokens,
        completion_tokens=row.completion_tokens,
        finish_reason=row.finish_reason,
        error=EngineError(row.error) if row.error else None,
    )
