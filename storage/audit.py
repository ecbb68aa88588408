"""Who looked at or changed what. Entries are added and never altered."""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from storage.database import Database
from storage.models import AuditRow, ConversationRow, ExchangeTable, UserRow
from storage.paging import before_number, page
from storage.records import AuditEntry, Page, Reading

SHOWN = 200  # characters of a prompt in a list
OPENED = ("review.open", "request.open")  # what is written when somebody reads an exchange; its target is the exchange

Readings = list[Reading]  # the method `list` hides the type inside the class


class Audit:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, actor: str, action: str, target: str = "", detail: str = "") -> None:
        """Write an entry; it is on the disk when this returns. Raises StorageUnavailable when it cannot be."""
        row = AuditRow(at=datetime.now(UTC), actor=actor, action=action, target=target, detail=detail)
        values = row.model_dump(exclude={"id"})  # a row object cannot be added again when the disk was full
        await self._database.write(lambda session: session.exec(sa.insert(AuditRow).values(**values)))

    async def list(
        self,
        *,
        action: str = "",
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page[AuditEntry]:
        """Newest first. `action` may be a beginning: "review." finds all that reviewers did; actor "" is the server.

        `since` is included, `until` is not.

        Raises ValueError for a cursor that is not one.
        """
        rows = (
            select(AuditRow)
            .where(*before_number(AuditRow.id, cursor))
            .order_by(col(AuditRow.id).desc())
            .limit(limit + 1)
        )
        if action:
            rows = rows.where(col(AuditRow.action).startswith(action, autoescape=True))
        if actor is not None:
            rows = rows.where(col(AuditRow.actor) == actor)
        if since is not None:
            rows = rows.where(col(AuditRow.at) >= since)
        if until is not None:
            rows = rows.where(col(AuditRow.at) < until)

        def work(session: Session) -> Page[AuditEntry]:
            return page(session.exec(rows).all(), limit, _entry, lambda row: [str(row.id)])

        return await self._database.read(work)

    async def readings(self, user_id: str, *, limit: int = 50) -> Readings:
        """Who opened what this person had asked, newest first; their own look at it is left out."""
        rows = (
            sa.select(
                col(AuditRow.at),
                col(AuditRow.actor).label("reader"),
                sa.func.coalesce(col(ConversationRow.title), "").label("title"),
                sa.func.substr(col(ExchangeTable.prompt), 1, SHOWN).label("prompt"),
            )
            .join(ExchangeTable, col(ExchangeTable.id) == col(AuditRow.target))
            .join(UserRow, col(UserRow.id) == col(ExchangeTable.person))
            .outerjoin(ConversationRow, col(ConversationRow.id) == col(ExchangeTable.conversation_id))
            .where(
                col(AuditRow.action).in_(OPENED), col(UserRow.id) == user_id, col(AuditRow.actor) != col(UserRow.name)
            )
            .order_by(col(AuditRow.id).desc())
            .limit(limit)
        )

        def work(session: Session) -> Readings:
            found = session.connection().execute(rows)
            return [Reading(at=row.at, reader=row.reader, title=row.title, prompt=row.prompt) for row in found]

        return await self._database.search(work)


def _entry(row: AuditRow) -> AuditEntry:
    assert row.id is not None
    return AuditEntry(id=row.id, at=row.at, actor=row.actor, action=row.action, target=row.target, detail=row.detail)
