"""Which exchanges a program asked for under which idempotency key. Keys are forgotten after a day."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa
from sqlmodel import Session, col

from storage.database import Database
from storage.models import IdempotencyRow

KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked under a key: a hash of the request, and the exchanges that answer it, by choice."""

    body_hash: str
    exchange_ids: tuple[str, ...]


class Idempotency:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, caller: str, key: str) -> Asked | None:
        def work(session: Session) -> Asked | None:
            row = session.get(IdempotencyRow, (caller, key))
            if row is None or row.created_at < datetime.now(UTC) - KEPT:
                return None
            return Asked(row.body_hash, tuple(json.loads(row.exchange_ids)))

        return await self._database.read(work)

    async def add(self, caller: str, key: str, body_hash: str, exchange_ids: Sequence[str]) -> None:
        """Remember what was asked under this key, and forget keys that are too old."""
        now = datetime.now(UTC)
        ids = json.dumps(list(exchange_ids))
        row = IdempotencyRow(caller=caller, key=key, body_hash=body_hash, exchange_ids=ids, created_at=now)

        def work(session: Session) -> None:
            session.exec(sa.delete(IdempotencyRow).where(col(IdempotencyRow.created_at) < now - KEPT))
            session.merge(row)

        await self._database.write(work)
