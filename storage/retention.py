"""How long what is kept is kept, and what is held beyond that.

    plan = await store.retention.plan(days)            # what would go now, and what is held
    await store.retention.enforce(days)                # delete it

Days are by kind; 0 keeps all. Knows nothing of when it is run and of who may.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

import sqlalchemy as sa
from sqlmodel import Session, col, select

from storage.database import Database
from storage.deleting import CHUNK, Due, count, delete, empty_conversations, ended, held, old, used_before
from storage.models import AuditRow, Base, HoldRow
from storage.records import Hold, HoldKind

Kind = Literal["exchanges", "audit", "samples"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Days = dict[Kind, int]  # 0 keeps all


class Retention:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def plan(self, days: Days, now: datetime | None = None) -> dict[Kind, Due]:
        """What `enforce` would do at this moment. Nothing is changed."""
        now = now or datetime.now(UTC)
        return await self._database.search(lambda session: {kind: _due(session, kind, days, now) for kind in KINDS})

    async def enforce(self, days: Days, now: datetime | None = None) -> dict[Kind, int]:
        """Delete what is older than it may become, but for what is held; return how much by kind."""
        now = now or datetime.now(UTC)
        deleted = dict.fromkeys(KINDS, 0)
        if days.get("exchanges"):
            when = now - timedelta(days=days["exchanges"])
            deleted["exchanges"] = await delete(self._database, old(when))
            await self._database.write(lambda session: empty_conversations(session, used_before(when)))
        for kind in ("audit", "samples"):
            deleted[kind] = await self._trim(kind, days.get(kind, 0), now)
        return deleted

    async def hold(self, kind: HoldKind, target: str, *, reason: str, by: str) -> None:
        """Keep an exchange, a conversation or all of a person's, by id, until it is released."""
        row = HoldRow(kind=kind, target=target, reason=reason, by=by, at=datetime.now(UTC))
        values = row.model_dump()
        await self._database.write(lambda session: session.merge(HoldRow(**values)))

    async def release(self, kind: HoldKind, target: str) -> bool:
        change = sa.delete(HoldRow).where(col(HoldRow.kind) == kind, col(HoldRow.target) == target)
        return await self._database.write(lambda session: session.exec(change).rowcount == 1)

    async def holds(self) -> list[Hold]:
        """All that is held, newest first."""
        rows = select(HoldRow).order_by(col(HoldRow.at).desc(), col(HoldRow.target))
        return await self._database.read(lambda session: [_hold(row) for row in session.exec(rows)])

    async def _trim(self, kind: Kind, days: int, now: datetime) -> int:
        table, deleted = _table(kind), 0
        if table is None or not days:
            return 0
        oldest = sa.select(table.c.at).order_by(table.c.at).limit(CHUNK).subquery()
        when = now - timedelta(days=days)

        def chunk(session: Session) -> int:
            last = sa.select(sa.func.max(oldest.c.at)).where(oldest.c.at < when).scalar_subquery()
            return session.connection().execute(sa.delete(table).where(table.c.at <= last)).rowcount

        while count := await self._database.write(chunk):
            deleted += count
        if deleted:
            await self._database.empty_log()
        return deleted


def _due(session: Session, kind: Kind, days: Days, now: datetime) -> Due:
    if not days.get(kind):
        return Due(0)
    when = now - timedelta(days=days[kind])
    if kind == "exchanges":
        goes = count(session, old(when), ended(), ~held())
        return Due(goes, count(session, old(when), ended()) - goes)
    table = _table(kind)
    if table is None:
        return Due(0)
    rows = sa.select(sa.func.count()).select_from(table).where(table.c.at < when)
    return Due(int(session.connection().execute(rows).scalar_one()))


def _table(kind: Kind) -> Any:
    """The table of a kind that is deleted by its column `at` alone; None: this version keeps no such thing."""
    return Base.metadata.tables.get(str(AuditRow.__tablename__) if kind == "audit" else kind)


def _hold(row: HoldRow) -> Hold:
    return Hold(
        kind=row.kind,  # type: ignore[arg-type]  # only HoldKind is ever written
        target=row.target,
        reason=row.reason,
        by=row.by,
        at=row.at,
    )
