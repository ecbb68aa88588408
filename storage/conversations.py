"""People's conversations. Every method but `create` takes the owner's id and sees nobody else's, and nothing deleted
unless asked to.

A conversation is a tree: each exchange names the one before it as its `parent_id`, and `head_id` is the end of the
branch that is shown. A parent that retention has taken is simply missing; its children are roots then. What is done
with single turns is in storage/turns.py.

Deleting hides a conversation from its owner and can be undone by `restore`. The log keeps its exchanges, so reviewers
still find them, until `retention.enforce` takes them.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import Exchange, Sampling, new_id
from storage.database import Database
from storage.models import Base, ConversationRow, ExchangeTable
from storage.paging import before, page
from storage.records import Conversation, Hit, Page, Shelf
from storage.rows import sampling_from_json, sampling_to_json, to_values
from storage.search import contains, in_rows, snippet, words
from storage.turns import inherited, is_removed, own, visible

list_ = list  # the method `list` hides the type inside the class


class Conversations:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._unwritten: dict[str, Conversation] = {}  # made while the database is in trouble

    async def create(
        self, user_id: str, *, title: str = "", system_prompt: str | None = None, sampling: Sampling | None = None
    ) -> Conversation:
        now = datetime.now(UTC)
        values: dict[str, Any] = {
            "id": new_id(),
            "user_id": user_id,
            "title": title,
            "system_prompt": system_prompt,
            "sampling": _json(sampling),
            "created_at": now,
            "updated_at": now,
        }
        conversation = _conversation(ConversationRow(**values))
        writing = await self._database.keep(lambda session: session.add(ConversationRow(**values)))
        if not writing.done():
            self._unwritten[conversation.id] = conversation
            writing.add_done_callback(lambda _: self._unwritten.pop(conversation.id))
        return conversation

    async def get(self, id: str, user_id: str) -> Conversation | None:
        """None too when it is somebody else's or deleted."""
        rows = select(ConversationRow).where(*_own(id, user_id))

        def work(session: Session) -> Conversation | None:
            row = session.exec(rows).first()
            return _conversation(row) if row else None

        made = self._unwritten.get(id)
        return made if made and made.user_id == user_id else await self._database.read(work)

    async def list(
        self,
        user_id: str,
        *,
        limit: int = 100,
        cursor: str | None = None,
        shelf: Shelf | None = None,
        deleted: bool = False,
    ) -> Page[Conversation]:
        """The one with the newest exchange first; of one shelf, or of all. `deleted`: with those that the person has
        deleted. Raises ValueError for a cursor that is not one."""
        whose = [col(ConversationRow.user_id) == user_id] if deleted else _visible(user_id)
        rows = (
            select(ConversationRow)
            .where(*whose, *before(ConversationRow.updated_at, ConversationRow.id, cursor), *_on(shelf))
            .order_by(col(ConversationRow.updated_at).desc(), col(ConversationRow.id).desc())
            .limit(limit + 1)
        )

        def work(session: Session) -> Page[Conversation]:
            found = session.exec(rows).all()
            return page(found, limit, _conversation, lambda row: [row.updated_at.isoformat(), row.id])

        return await self._database.read(work)

    async def rename(self, id: str, user_id: str, title: str) -> bool:
        return await self._change(id, user_id, title=title, titled=True)

    async def entitle(self, id: str, user_id: str, title: str) -> bool:
        """The model's title; False where a person has given one meanwhile."""
        change = sa.update(ConversationRow).where(*_own(id, user_id), ~col(ConversationRow.titled))
        return await self._update(change.values(title=title, titled=True))

    async def pin(self, id: str, user_id: str, pinned: bool) -> bool:
        return await self._change(id, user_id, pinned=pinned)

    async def archive(self, id: str, user_id: str, archived: bool) -> bool:
        return await self._change(id, user_id, archived_at=datetime.now(UTC) if archived else None)

    async def move(self, id: str, user_id: str, folder: str) -> bool:
        """Into a folder, which there is from then on; "" is none."""
        return await self._change(id, user_id, folder=folder)

    async def rename_folder(self, user_id: str, name: str, new_name: str) -> int:
        """Returns how many conversations are in it; "" as the new name takes them out, and the folder is gone."""
        change = sa.update(ConversationRow).where(*_visible(user_id), col(ConversationRow.folder) == name)
        return await self._database.write(
            lambda session: session.exec(change.values(folder=new_name)).rowcount if name else 0
        )

    async def configure(self, id: str, user_id: str, *, system_prompt: str | None, sampling: Sampling | None) -> bool:
        """Set both; None goes back to the server's."""
        return await self._change(id, user_id, system_prompt=system_prompt, sampling=_json(sampling))

    async def set_head(self, id: str, user_id: str, exchange_id: str, *, used: bool = True) -> bool:
        """Show the branch that ends with this exchange; `used` also moves the conversation to the top of the list."""
        at = {"updated_at": datetime.now(UTC)} if used else {}
        change = sa.update(ConversationRow).where(*_own(id, user_id)).values(head_id=exchange_id, **at)
        writing = await self._database.keep(lambda session: session.exec(change).rowcount == 1)
        return not writing.done() or writing.result()

    async def delete(self, id: str, user_id: str) -> bool:
        """Hide it from its owner. Its exchanges stay in the log."""
        return await self._change(id, user_id, deleted_at=datetime.now(UTC))

    async def restore(self, id: str, user_id: str) -> bool:
        """Undo `delete`. False: nothing of this person's was deleted under that id."""
        change = sa.update(ConversationRow).where(
            col(ConversationRow.id) == id,
            col(ConversationRow.user_id) == user_id,
            col(ConversationRow.deleted_at).is_not(None),
        )
        return await self._update(change.values(deleted_at=None))

    async def exchanges(self, id: str, user_id: str) -> list_[Exchange]:
        """The whole tree without what was removed, oldest first; empty when it is somebody else's or deleted."""

        def work(session: Session) -> list_[Exchange]:
            conversation = own(session, id, user_id)
            return visible(session, conversation) if conversation else []

        return await self._database.read(work)

    async def take_in(
        self,
        user_id: str,
        exchanges: Sequence[Exchange],
        *,
        title: str,
        updated_at: datetime,
        system_prompt: str | None = None,
        sampling: Sampling | None = None,
        folder: str = "",
        pinned: bool = False,
        archived: bool = False,
        head_id: str | None = None,
    ) -> str:
        """Make a conversation from what was written elsewhere, all of it or nothing; return its id.

        The exchanges become this person's, of this conversation and of the source `import`, whatever they say.
        """
        id, now = new_id(), datetime.now(UTC)
        rows = [to_values(replace(one, person=user_id, conversation_id=id, source="import")) for one in exchanges]

        def work(session: Session) -> str:
            row = ConversationRow(
                id=id,
                user_id=user_id,
                title=title,
                titled=True,
                system_prompt=system_prompt,
                sampling=_json(sampling),
                folder=folder,
                pinned=pinned,
                archived_at=now if archived else None,
                head_id=head_id,
                created_at=now,
                updated_at=updated_at,
            )
            session.add(row)
            session.flush()
            if rows:
                session.connection().execute(_INSERT, rows)
            return id

        return await self._database.write(work)

    async def search(self, user_id: str, text: str, *, limit: int = 30) -> list_[Hit]:
        """Conversations whose title, or one of whose exchanges, holds every word of `text`; newest first.

        Looks through the person's own rows, so that two characters are enough; a fork's beginning is searched too.
        """
        if not words(text):
            return []
        sqlite = self._database.sqlite
        in_title = sa.and_(*(contains(ConversationRow.title, word, sqlite=sqlite) for word in words(text)))
        found = [*in_rows(text, sqlite=sqlite), ~is_removed()]
        newest = sa.select(sa.func.max(ExchangeTable.number)).where(*found)
        begun = inherited(user_id)
        asked_in_it = newest.where(col(ExchangeTable.conversation_id) == col(ConversationRow.id)).scalar_subquery()
        begins_with = newest.where(
            begun.c.conversation_id == col(ConversationRow.id), begun.c.exchange_id == col(ExchangeTable.id)
        ).scalar_subquery()
        number = sa.func.coalesce(asked_in_it, begins_with)
        rows = (
            select(ConversationRow, in_title, number)
            .where(*_visible(user_id), sa.or_(in_title, number.is_not(None)))
            .order_by(col(ConversationRow.updated_at).desc(), col(ConversationRow.id).desc())
            .limit(limit)
        )

        def work(session: Session) -> list_[Hit]:
            return [
                Hit(conversation=_conversation(row), snippet="" if titled else _snippet(session, number, text))
                for row, titled, number in session.exec(rows).all()
            ]

        return await self._database.search(work)

    async def _change(self, id: str, user_id: str, **values: object) -> bool:
        return await self._update(sa.update(ConversationRow).where(*_own(id, user_id)).values(**values))

    async def _update(self, change: sa.Update) -> bool:
        return await self._database.write(lambda session: session.exec(change).rowcount == 1)


def _visible(user_id: str) -> list_[sa.ColumnElement[bool]]:
    return [col(ConversationRow.user_id) == user_id, col(ConversationRow.deleted_at).is_(None)]


def _on(shelf: Shelf | None) -> list_[sa.ColumnElement[bool]]:
    archived = col(ConversationRow.archived_at).is_not(None)
    kept = sa.or_(col(ConversationRow.pinned), col(ConversationRow.folder) != "")
    match shelf:
        case "archived":
            return [archived]
        case "kept":
            return [~archived, kept]
        case "recent":
            return [~archived, ~kept]
    return []


def _own(id: str, user_id: str) -> list_[sa.ColumnElement[bool]]:
    return [col(ConversationRow.id) == id, *_visible(user_id)]


def _snippet(session: Session, number: int, text: str) -> str:
    row = session.get_one(ExchangeTable, number)
    return snippet([row.prompt, row.answer], text)


def _json(sampling: Sampling | None) -> str | None:
    return None if sampling is None else sampling_to_json(sampling)


def _conversation(row: ConversationRow) -> Conversation:
    return Conversation(
        id=row.id,
        user_id=row.user_id,
        title=row.title,
        system_prompt=row.system_prompt,
        sampling=None if row.sampling is None else sampling_from_json(row.sampling),
        head_id=row.head_id,
        created_at=row.created_at,
        updated_at=row.updated_at,
        titled=row.titled,
        pinned=row.pinned,
        folder=row.folder,
        archived=row.archived_at is not None,
        deleted=row.deleted_at is not None,
        forked_from=row.forked_from,
    )


_INSERT = sa.insert(Base.metadata.tables["exchanges"])
