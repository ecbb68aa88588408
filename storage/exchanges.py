"""The log: one row for each prompt with its answer. What faces and reviewers read, and where the service writes.

`Exchanges` is the service's Recorder. The row of an exchange is there before its first token, follows the answer about
once a second, and enters the search index when it is final.
"""

import asyncio
from datetime import UTC, datetime
from functools import partial
from typing import Any

import sqlalchemy as sa
from loguru import logger
from sqlmodel import Session, col, select
from sqlmodel.sql.expression import SelectOfScalar

from engine.types import Exchange, Status
from storage.database import Database
from storage.models import Base, ConversationRow, ExchangeTable, UserRow
from storage.paging import before, page
from storage.records import ExchangeFilter, ExchangeRow, Page
from storage.rows import to_exchange, to_values
from storage.search import UNFINISHED, in_index, in_rows

SHOWN = 200  # characters of prompt and answer in a list
CHUNK = 500  # rows that retention deletes in one transaction
MERGE_PAGES = 500  # pages of the search index that are tidied in one transaction


class Exchanges:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._indexed = False

    def record(self, exchange: Exchange) -> "asyncio.Future[None]":
        """Queue an insert or update and return at once. The future is done when this, or newer, is committed.

        Of several queued snapshots of one exchange the newest is written; what was asked, by whom and with which
        values, stays as it was first recorded. A snapshot that the database refuses for
        its own sake (an unknown person) fails alone; a full disk or a lock only delays, see `health`.
        """
        future = self._database.writer.submit(lambda session: _save(session, exchange), key=exchange.id)
        future.add_done_callback(_log_failure)
        return future

    def health(self) -> str | None:
        """Why nothing can be written at the moment, in a sentence; None when writing works."""
        return self._database.writer.health()

    async def get(self, id: str) -> Exchange | None:
        rows = select(ExchangeTable).where(col(ExchangeTable.id) == id)

        def work(session: Session) -> Exchange | None:
            row = session.exec(rows).first()
            return to_exchange(row) if row else None

        return await self._database.read(work)

    async def conversation(self, conversation_id: str) -> list[Exchange]:
        """Anybody's conversation, deleted or not, oldest first. For reviewers."""
        rows = in_conversation(conversation_id)
        return await self._database.read(lambda session: [to_exchange(row) for row in session.exec(rows)])

    async def search(self, filter: ExchangeFilter, *, limit: int = 50, cursor: str | None = None) -> Page[ExchangeRow]:
        """Newest first. `since` is included, `until` is not. Raises ValueError for a cursor that is not one,
        and SearchTooSlow.

        A text with a word of three characters or more uses the index; with shorter words alone, the rows between
        `since` and `until` are looked through, newest first, until the page is full.
        """
        conditions = [*self._conditions(filter), *before(ExchangeTable.queued_at, ExchangeTable.id, cursor)]
        rows = (
            sa.select(*_COLUMNS)
            .outerjoin(UserRow, col(UserRow.id) == col(ExchangeTable.person))
            .where(*conditions)
            .order_by(col(ExchangeTable.queued_at).desc(), col(ExchangeTable.id).desc())
            .limit(limit + 1)
        )

        def work(session: Session) -> Page[ExchangeRow]:
            found = session.connection().execute(rows).all()
            return page(found, limit, _line, lambda row: [row.queued_at.isoformat(), row.id])

        return await self._database.search(work)

    async def usage(self, since: datetime) -> dict[str, tuple[int, int]]:
        """By user id: how many requests, and how many completion tokens, were asked for since then."""
        rows = (
            sa.select(
                col(ExchangeTable.person),
                sa.func.count(),
                sa.func.sum(col(ExchangeTable.completion_tokens)),
            )
            .where(col(ExchangeTable.queued_at) >= since, col(ExchangeTable.person).is_not(None))
            .group_by(col(ExchangeTable.person))
        )

        def work(session: Session) -> dict[str, tuple[int, int]]:
            found = session.connection().execute(rows)
            return {str(person): (requests, int(tokens)) for person, requests, tokens in found}

        return await self._database.search(work)

    async def delete_before(self, when: datetime) -> int:
        """Delete what was asked before `when` and has ended; return how many. Their text leaves the index too.

        Conversations that were last used before `when` and have no exchanges left lose title and settings, and go.
        """
        deleted = 0
        while chunk := await self._database.write(lambda session: _delete_chunk(session, when)):
            deleted += chunk
        await self._database.write(lambda session: _empty_conversations(session, when))
        if deleted and self._indexed:
            pages = -MERGE_PAGES  # negative begins to merge the whole index into one, which drops deleted text
            while await self._database.write(partial(_merge_index, pages=pages)):
                pages = MERGE_PAGES
        await self._database.empty_log()
        return deleted

    def opened(self, session: Session) -> int:
        """For the store when it opens: mark what a crash left unfinished as interrupted, with its text. How many?"""
        self.look(session)
        change = (
            sa.update(ExchangeTable)
            .where(col(ExchangeTable.status).in_(UNFINISHED))
            .values(status=str(Status.INTERRUPTED), finished_at=datetime.now(UTC))
        )
        return session.exec(change).rowcount

    def look(self, session: Session) -> None:
        """For the store when it opens: find out what this database has."""
        self._indexed = sa.inspect(session.connection()).has_table("exchanges_search")

    def _conditions(self, filter: ExchangeFilter) -> list[sa.ColumnElement[bool]]:
        table = ExchangeTable
        conditions: list[sa.ColumnElement[bool]] = []
        if filter.person is not None:
            conditions.append(col(table.person) == (filter.person or None))
        if filter.since is not None:
            conditions.append(col(table.queued_at) >= filter.since)
        if filter.until is not None:
            conditions.append(col(table.queued_at) < filter.until)
        if filter.status is not None:
            conditions.append(col(table.status) == str(filter.status))
        if filter.source is not None:
            conditions.append(col(table.source) == filter.source)
        text = in_index(filter.text) if self._indexed else in_rows(filter.text, sqlite=self._database.sqlite)
        return conditions + text


def in_conversation(id: str) -> SelectOfScalar[ExchangeTable]:
    return (
        select(ExchangeTable)
        .where(col(ExchangeTable.conversation_id) == id)
        .order_by(col(ExchangeTable.queued_at), col(ExchangeTable.id))
    )


# What changes after the first snapshot. The rest stays, so that the indexes over it are not written again either.
MOVING = (
    "answer",
    "status",
    "finish_reason",
    "error",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "started_at",
    "first_token_at",
    "finished_at",
)
_TABLE = Base.metadata.tables["exchanges"]
_INSERT = sa.insert(_TABLE)
_MOVE_ON = sa.update(_TABLE).where(_TABLE.c.id == sa.bindparam("which"))

_COLUMNS = [
    col(ExchangeTable.id),
    sa.func.coalesce(col(UserRow.name), "").label("user_name"),
    col(ExchangeTable.source),
    col(ExchangeTable.status),
    col(ExchangeTable.conversation_id),
    sa.func.substr(col(ExchangeTable.prompt), 1, SHOWN).label("prompt"),
    sa.func.substr(col(ExchangeTable.answer), 1, SHOWN).label("answer"),
    col(ExchangeTable.model),
    col(ExchangeTable.queued_at),
    col(ExchangeTable.started_at),
    col(ExchangeTable.first_token_at),
    col(ExchangeTable.finished_at),
    col(ExchangeTable.prompt_tokens),
    col(ExchangeTable.completion_tokens),
]


def _line(row: sa.Row[*tuple[Any, ...]]) -> ExchangeRow:
    def after_s(moment: datetime | None) -> float | None:
        return None if moment is None else (moment - row.queued_at).total_seconds()

    return ExchangeRow(
        id=row.id,
        user_name=row.user_name,
        source=row.source,
        status=Status(row.status),
        conversation_id=row.conversation_id,
        prompt=row.prompt,
        answer=row.answer,
        model=row.model,
        queued_at=row.queued_at,
        queue_s=after_s(row.started_at),
        ttft_s=after_s(row.first_token_at),
        total_s=after_s(row.finished_at),
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
    )


def _save(session: Session, exchange: Exchange) -> None:
    """These two statements are made once: building one takes longer than running it."""
    values = to_values(exchange)
    connection = session.connection()
    if connection.execute(_MOVE_ON, {"which": exchange.id} | {name: values[name] for name in MOVING}).rowcount == 0:
        connection.execute(_INSERT, values)


def _log_failure(future: "asyncio.Future[None]") -> None:
    if not future.cancelled() and (error := future.exception()):
        logger.error("an exchange is not written: {}", error)


def _delete_chunk(session: Session, when: datetime) -> int:
    final = col(ExchangeTable.status).not_in(UNFINISHED)
    rows = sa.select(col(ExchangeTable.number), col(ExchangeTable.id)).where(col(ExchangeTable.queued_at) < when, final)
    found = session.connection().execute(rows.limit(CHUNK)).all()
    ids = [row.id for row in found]
    session.exec(sa.update(ConversationRow).where(col(ConversationRow.head_id).in_(ids)).values(head_id=None))
    session.exec(sa.delete(ExchangeTable).where(col(ExchangeTable.number).in_([row.number for row in found])))
    return len(found)


def _empty_conversations(session: Session, when: datetime) -> None:
    """The row stays, so that an exchange which a forgotten page still sends there finds it."""
    used = sa.exists().where(col(ExchangeTable.conversation_id) == col(ConversationRow.id))
    session.exec(
        sa.update(ConversationRow)
        .where(col(ConversationRow.updated_at) < when, ~used)
        .values(title="", system_prompt=None, sampling=None, head_id=None, deleted_at=datetime.now(UTC))
    )


def _merge_index(session: Session, pages: int) -> bool:
    """Merge a piece of the search index. False: there was nothing left to do.

    FTS5's own option "secure-delete" would spare this, but SQLite before 3.42 cannot read the index any more then.
    """
    connection = session.connection()
    before: int = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
    merge = sa.text("INSERT INTO exchanges_search (exchanges_search, rank) VALUES ('merge', :pages)")
    connection.execute(merge, {"pages": pages})
    after: int = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
    return after - before >= 2
