"""Erasing what a person wrote, and the requests for it.

The rows of erased exchanges stay, with who, when and how much, so that usage and load can still be told; every text in
them is gone for good: from the rows, the search index, the free pages and the write-ahead log.
"""

import json
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import Sampling
from storage.database import Database
from storage.exchanges import CHUNK, Exchanges
from storage.models import ConversationRow, ErasureRow, ExchangeTable, FeedbackRow, TemplateRow, UserRow
from storage.records import Erasure
from storage.rows import sampling_to_json
from storage.search import UNFINISHED

ERASED = "[erased]"  # stands where the question was

_WITHOUT_TEXT = {
    "prompt": ERASED,
    "messages": json.dumps([{"role": "user", "content": ERASED}]),
    "answer": "",
    "error": None,
    "sampling": sampling_to_json(Sampling()),  # stop strings are text as well
    "conversation_id": None,
    "parent_id": None,
}


class Erasures:
    def __init__(self, database: Database, exchanges: Exchanges) -> None:
        self._database, self._exchanges = database, exchanges

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

    async def erase(self, user_id: str) -> int:
        """Erase the text of all that this person asked and was answered; return how many exchanges that were.

        What still runs or waits stays: end it first. Conversations go, and feedback and own templates with them.
        """
        erased = 0
        while chunk := await self._database.write(lambda session: _erase_chunk(session, user_id)):
            erased += chunk
        await self._database.write(lambda session: _erase_the_rest(session, user_id))
        await self._exchanges.tidy(changed=erased > 0)
        return erased


def _erase_chunk(session: Session, user_id: str) -> int:
    rows = select(ExchangeTable.number).where(
        col(ExchangeTable.person) == user_id,
        col(ExchangeTable.status).not_in(UNFINISHED),
        col(ExchangeTable.messages) != _WITHOUT_TEXT["messages"],
    )
    numbers = session.exec(rows.limit(CHUNK)).all()
    session.exec(sa.update(ExchangeTable).where(col(ExchangeTable.number).in_(numbers)).values(**_WITHOUT_TEXT))
    return len(numbers)


def _erase_the_rest(session: Session, user_id: str) -> None:
    """The rows of conversations stay, so that an exchange which a forgotten page still sends there finds it."""
    session.exec(
        sa.update(ConversationRow)
        .where(col(ConversationRow.user_id) == user_id)
        .values(title="", folder="", system_prompt=None, sampling=None, head_id=None, deleted_at=datetime.now(UTC))
    )
    session.exec(sa.delete(FeedbackRow).where(col(FeedbackRow.user_id) == user_id))
    session.exec(sa.delete(TemplateRow).where(col(TemplateRow.user_id) == user_id, ~col(TemplateRow.shared)))
    session.exec(sa.delete(ErasureRow).where(col(ErasureRow.user_id) == user_id))
    session.exec(sa.update(UserRow).where(col(UserRow.id) == user_id).values(system_prompt=None, sampling=None))
