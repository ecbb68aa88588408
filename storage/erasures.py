"""Erasing what a person wrote, and the requests for it.

What a request to erase leaves is counts by day. What is held stays until it is released.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from storage.database import Database
from storage.deleting import Due, count, delete, empty_conversations, ended, forget, held, of_person
from storage.models import ConversationRow, ErasureRow, FeedbackRow, TemplateRow, UserRow
from storage.records import Erasure


class Erasures:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def request(self, user_id: str) -> None:
        """Note that this person asks for it, and hide all their conversations from them."""

        def work(session: Session) -> None:
            now = datetime.now(UTC)
            if session.get(ErasureRow, user_id) is None:
                session.add(ErasureRow(user_id=user_id, at=now))
            session.exec(
                sa.update(ConversationRow)
                .where(col(ConversationRow.user_id) == user_id, col(ConversationRow.deleted_at).is_(None))
                .values(deleted_at=now)
            )

        await self._database.write(work)

    async def withdraw(self, user_id: str) -> None:
        """Ask no more. The conversations stay hidden."""
        change = sa.delete(ErasureRow).where(col(ErasureRow.user_id) == user_id)
        await self._database.write(lambda session: session.exec(change))

    async def waiting(self) -> list[Erasure]:
        """Who asks for it, oldest first."""
        rows = (
            select(ErasureRow, UserRow.name)
            .join(UserRow, col(UserRow.id) == col(ErasureRow.user_id))
            .order_by(col(ErasureRow.at))
        )

        def work(session: Session) -> list[Erasure]:
            return [Erasure(user_id=row.user_id, user_name=name, at=row.at) for row, name in session.exec(rows)]

        return await self._database.read(work)

    async def plan(self, user_id: str) -> Due:
        """How many exchanges `erase` would delete, and how many stay because they are held or still run."""

        def work(session: Session) -> Due:
            goes = count(session, of_person(user_id), ended(), ~held())
            return Due(goes, count(session, of_person(user_id)) - goes)

        return await self._database.search(work)

    async def erase(self, user_id: str) -> int:
        """Delete all that this person asked and was answered, and what reviewers made of it; return how many exchanges.

        What is held, or still runs, stays, with its conversation. The account, the audit trail and the totals by day
        stay; feedback, own templates and titles go.
        """
        deleted = await delete(self._database, of_person(user_id))
        await self._database.write(lambda session: _erase_the_rest(session, user_id))
        await forget(self._database)
        return deleted


def _erase_the_rest(session: Session, user_id: str) -> None:
    empty_conversations(session, col(ConversationRow.user_id) == user_id)
    session.exec(sa.delete(FeedbackRow).where(col(FeedbackRow.user_id) == user_id))
    session.exec(sa.delete(TemplateRow).where(col(TemplateRow.user_id) == user_id, ~col(TemplateRow.shared)))
    session.exec(sa.delete(ErasureRow).where(col(ErasureRow.user_id) == user_id))
    session.exec(sa.update(UserRow).where(col(UserRow.id) == user_id).values(system_prompt=None, sampling=None))
