"""A conversation's tree: its exchanges, those that were removed from it, and those it was forked from.

Every method takes the owner's id and sees nobody else's and nothing deleted. The log keeps what is removed here: it is
hidden from its owner's pages alone, and in this one conversation. A fork holds no copies, so that the log and its
figures have every exchange once; it names the exchange it begins with, which may be another conversation's.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import Exchange, Message, new_id
from storage.database import Database
from storage.models import ConversationRow, ExchangeTable, RemovedTurnRow
from storage.rows import to_exchange


class Turns:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def remove(self, id: str, user_id: str, exchange_id: str, head_id: str | None) -> bool:
        """Hide an exchange and all that follow it, and show the branch that ends with `head_id` from now on."""

        def work(session: Session) -> bool:
            conversation = own(session, id, user_id)
            below = _with_followers(visible(session, conversation), exchange_id) if conversation else []
            if not conversation or not below:
                return False
            now = datetime.now(UTC)
            session.add_all(RemovedTurnRow(conversation_id=id, exchange_id=one, removed_at=now) for one in below)
            conversation.head_id = head_id
            return True

        return await self._database.write(work)

    async def restore(self, id: str, user_id: str, exchange_id: str, head_id: str | None) -> bool:
        """Undo `remove` of this exchange, with all that went with it. False: it was not removed."""

        def work(session: Session) -> bool:
            conversation = own(session, id, user_id)
            removed = session.get(RemovedTurnRow, (id, exchange_id))
            if not conversation or not removed:
                return False
            together = sa.delete(RemovedTurnRow).where(
                col(RemovedTurnRow.conversation_id) == id, col(RemovedTurnRow.removed_at) == removed.removed_at
            )
            session.exec(together)
            conversation.head_id = head_id
            return True

        return await self._database.write(work)

    async def fork(self, id: str, user_id: str, exchange_id: str, title: str) -> str | None:
        """A new conversation that begins as this one does, up to and with this exchange; its id. None: there is none
        such."""

        def work(session: Session) -> str | None:
            conversation = own(session, id, user_id)
            if not conversation or exchange_id not in {one.id for one in visible(session, conversation)}:
                return None
            now = datetime.now(UTC)
            fork = ConversationRow(
                id=new_id(),
                user_id=user_id,
                title=title,
                titled=True,
                system_prompt=conversation.system_prompt,
                sampling=conversation.sampling,
                folder=conversation.folder,
                head_id=exchange_id,
                forked_from=exchange_id,
                created_at=now,
                updated_at=now,
            )
            session.add(fork)
            return fork.id

        return await self._database.write(work)


def own(session: Session, id: str, user_id: str) -> ConversationRow | None:
    """The conversation, if it is this person's and not deleted."""
    row = session.get(ConversationRow, id)
    return row if row and row.user_id == user_id and row.deleted_at is None else None


def visible(session: Session, conversation: ConversationRow) -> list[Exchange]:
    """The tree as its owner sees it, oldest first."""
    removed = sa.select(col(RemovedTurnRow.exchange_id)).where(col(RemovedTurnRow.conversation_id) == conversation.id)
    hidden = set(session.connection().execute(removed).scalars())
    return [exchange for exchange in whole(session, conversation) if exchange.id not in hidden]


def whole(session: Session, conversation: ConversationRow) -> list[Exchange]:
    """The tree with what was removed, oldest first; a fork begins with the exchanges that it was made from."""
    known: dict[Message, Message] = {}
    inherited = list(_above(session, conversation.forked_from, known))
    rows = (
        select(ExchangeTable)
        .where(col(ExchangeTable.conversation_id) == conversation.id)
        .order_by(col(ExchangeTable.queued_at), col(ExchangeTable.id))
    )
    return [*inherited[::-1], *(to_exchange(row, known) for row in session.exec(rows))]


def is_removed() -> sa.Exists:
    """For a query over conversations and exchanges: whether the exchange was removed from the conversation."""
    removed = sa.exists().where(
        col(RemovedTurnRow.conversation_id) == col(ConversationRow.id),
        col(RemovedTurnRow.exchange_id) == col(ExchangeTable.id),
    )
    return removed.correlate(ConversationRow, ExchangeTable)


def inherited(user_id: str) -> sa.CTE:
    """For a query: which exchanges (`exchange_id`) the forks of this person (`conversation_id`) begin with."""
    forks: sa.Select[Any, Any] = sa.select(
        col(ConversationRow.id).label("conversation_id"), col(ConversationRow.forked_from).label("exchange_id")
    ).where(
        col(ConversationRow.user_id) == user_id,
        col(ConversationRow.deleted_at).is_(None),
        col(ConversationRow.forked_from).is_not(None),
    )
    found = forks.cte("inherited", recursive=True)
    parents = sa.select(found.c.conversation_id, col(ExchangeTable.parent_id)).where(
        col(ExchangeTable.id) == found.c.exchange_id, col(ExchangeTable.parent_id).is_not(None)
    )
    return found.union(parents)  # not "union all": a circle of parents ends


def _above(session: Session, exchange_id: str | None, known: dict[Message, Message]) -> Iterator[Exchange]:
    """The exchange and those before it, up to the first that is still there."""
    seen: set[str] = set()
    while exchange_id and exchange_id not in seen:
        seen.add(exchange_id)
        row = session.exec(select(ExchangeTable).where(col(ExchangeTable.id) == exchange_id)).first()
        if row is None:
            return
        yield to_exchange(row, known)
        exchange_id = row.parent_id


def _with_followers(tree: list[Exchange], exchange_id: str) -> list[str]:
    """The ids of an exchange and of all below it; empty where it is not in the tree. Parents come before children."""
    found = [one.id for one in tree if one.id == exchange_id]
    wanted = set(found)
    while more := [one.id for one in tree if one.parent_id in wanted and one.id not in wanted]:
        found += more
        wanted.update(more)
    return found
