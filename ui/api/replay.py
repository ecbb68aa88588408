"""An answer that has ended and is told again, from its row in the log. It has no logprobs: they are not kept."""

from collections.abc import AsyncGenerator

from engine.errors import EngineError
from engine.job import Update
from engine.types import Exchange, Logprob


class Replay:
    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.id, self.model, self.queued_at, self.text = (
            exchange.id,
            exchange.model,
            exchange.queued_at,
            exchange.answer,
        )
        self.logprobs: list[tuple[Logprob, ...]] = []

    async def follow(self) -> AsyncGenerator[Update, None]:
        """One update that holds it all."""
        row = self.exchange
        yield Update(
            seq=1,
            deltas=(row.answer,) if row.answer else (),
            status=row.status,
            prompt_tokens=row.prompt_tokens,
            cached_tokens=row.cached_tokens,
            completion_tokens=row.completion_tokens,
            finish_reason=row.finish_reason,
            error=EngineError(row.error) if row.error else None,
        )
