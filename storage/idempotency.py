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
    created_at: datetime


class Idempotency:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, caller: str, key: str) -> Asked | None:
        def work(session: Session) -> Asked | None:
            row = session.get(IdempotencyRow, (caller, key))
            if row is None or row.created_at < datetime.now(UTC) - KEPT:
                return None
            return _asked(row)

        return await self._database.read(work)

    async def claim(self, caller: str, key: str, body_hash: str, exchange_ids: Sequence[str]) -> Asked | None:
        """Remember what is asked under this key, and forget keys that are too old. Returns what was asked before.

        Of several who claim a key at once, one gets None, in whichever process they are.
        """
        now = datetime.now(UTC)
        ids = json.dumps(list(exchange_ids))
        row = {"caller": caller, "key": key, "body_hash": body_hash, "exchange_ids": ids, "created_at": now}

        def work(session: Session) -> Asked | None:
            session.exec(sa.delete(IdempotencyRow).where(col(IdempotencyRow.created_at) < now - KEPT))
            if (before := session.get(IdempotencyRow, (caller, key))) is None:
                session.exec(sa.insert(IdempotencyRow).values(**row))
            return _asked(before) if before else None

        try:
            return await self._database.write(work)
        except sa.exc.IntegrityError:  # another process was quicker
            return await self.find(caller, key)

    async def release(self, caller: str, key: str) -> None:
        """Forget a key under which nothing came to be asked, or of which the log has nothing left."""
        mine = col(IdempotencyRow.caller) == caller, col(IdempotencyRow.key) == key
        await self._database.write(lambda session: session.exec(sa.delete(IdempotencyRow).where(*mine)))


def _asked(row: IdempotencyRow) -> Asked:
    return Asked(row.body_hash, tuple(json.loads(row.exchange_ids)), row.created_at)
