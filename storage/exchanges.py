"""The log: one row for each prompt with its answer. What faces and reviewers read, and where the service writes.

`Exchanges` is the service's Recorder. The row of an exchange is there before its first token, follows the answer about
once a second, and enters the search index when it is final.
"""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import sqlalchemy as sa
from loguru import logger
from sqlmodel import Session, col, select

from engine.types import Exchange, Status
from storage.database import Database
from storage.listing import Listing, lines
from storage.models import Base, ConversationRow, DailyUseRow, ExchangeTable
from storage.neighbours import alike, beside
from storage.records import ExchangeFilter, ExchangeRow, Page
from storage.rows import to_exchange, to_values
from storage.search import UNFINISHED
from storage.turns import whole


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
        process = self._database.process
        future = self._database.writer.submit(lambda session: _save(session, exchange, process), key=exchange.id)
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
        """Anybody's conversation, deleted or not, removed turns too, oldest first. For reviewers."""

        def work(session: Session) -> list[Exchange]:
            conversation = session.get(ConversationRow, conversation_id)
            return whole(session, conversation) if conversation else []

        return await self._database.read(work)

    async def search(self, filter: ExchangeFilter, *, limit: int = 50, cursor: str | None = None) -> Page[ExchangeRow]:
        """Newest first. `since` is included, `until` is not. Raises ValueError for a cursor that is not one,
        and SearchTooSlow.
        """

        def work(session: Session) -> Page[ExchangeRow]:
            piece = Listing(session, filter, self._indexed).piece(limit, cursor)
            return Page(lines(session, piece.numbers, filter.text), piece.next)

        return await self._database.search(work)

    async def read(self, filter: ExchangeFilter, *, limit: int = 200, cursor: str | None = None) -> Page[Exchange]:
        """The same list with whole exchanges, for files."""

        def work(session: Session) -> Page[Exchange]:
            piece = Listing(session, filter, self._indexed).piece(limit, cursor)
            return Page(_exchanges(session, piece.numbers), piece.next)

        return await self._database.search(work)

    async def count(self) -> int:
        """How many there are; in a long log that takes a second."""
        rows = sa.select(sa.func.count()).select_from(ExchangeTable)
        return await self._database.search(lambda session: session.connection().execute(rows).scalar_one())

    async def like(self, id: str, *, limit: int = 50) -> list[ExchangeRow]:
        """What resembles an exchange most, by the rarest words of its prompt; the most alike first. Raises
        SearchTooSlow.
        """
        return await self._database.search(lambda session: lines(session, alike(session, id, limit, self._indexed)))

    async def read_like(self, id: str, *, limit: int = 50) -> list[Exchange]:
        """The same list with whole exchanges, for files."""
        return await self._database.search(
            lambda session: _exchanges(session, alike(session, id, limit, self._indexed))
        )

    async def beside(self, exchange: Exchange, *, limit: int = 50) -> tuple[int, list[ExchangeRow]]:
        """What was waiting or running at some time while this exchange was: how many, and the first of them."""
        return await self._database.search(lambda session: beside(session, exchange, limit))

    async def unfinished(self, person: str | None = None) -> list[ExchangeRow]:
        """What runs or waits, in whichever process, oldest first; of one person, or of everybody."""
        whose = [] if person is None else [col(ExchangeTable.person) == person]
        table = ExchangeTable
        rows = sa.select(col(table.number)).where(col(table.status).in_(UNFINISHED), *whose)
        oldest_first = rows.order_by(col(table.queued_at), col(table.id))

        def work(session: Session) -> list[ExchangeRow]:
            numbers: Sequence[int] = session.connection().execute(oldest_first).scalars().all()  # type: ignore[assignment]  # a key
            return lines(session, numbers)

        return await self._database.read(work)

    async def reruns(self, id: str) -> list[Exchange]:
        """The times that reviewers ran this exchange again, oldest first."""
        again = col(ExchangeTable.parent_id) == id, sa.text("source = 'review'")  # the index's own words
        rows = select(ExchangeTable).where(*again).order_by(col(ExchangeTable.number))
        return await self._database.read(lambda session: [to_exchange(row) for row in session.exec(rows)])

    async def models(self) -> list[str]:
        """Every model that an exchange has, by name: there are few, and the index leads to the first of each."""
        model = col(ExchangeTable.model)
        first = sa.select(sa.func.min(model))

        def work(session: Session) -> list[str]:
            found, rows = list[str](), first
            while (name := session.connection().execute(rows).scalar()) is not None:
                found.append(name)
                rows = first.where(model > name)
            return sorted(found)

        return await self._database.search(work)

    async def usage(self, since: datetime) -> dict[str, tuple[int, int]]:
        """By user id: how many requests, and how many completion tokens, were asked for since then.

        What is deleted counts too, by whole days in UTC; what was imported was not asked for here.
        """
        table, day = ExchangeTable, DailyUseRow
        kept = (
            sa.select(col(table.person), sa.func.count(), sa.func.sum(col(table.completion_tokens)))
            .where(col(table.queued_at) >= since, col(table.person).is_not(None), col(table.source) != "import")
            .group_by(col(table.person))
        )
        gone = (
            sa.select(col(day.person), sa.func.sum(col(day.requests)), sa.func.sum(col(day.completion_tokens)))
            .where(col(day.day) >= f"{since.astimezone(UTC):%Y-%m-%d}", col(day.person) != "")
            .group_by(col(day.person))
        )

        def work(session: Session) -> dict[str, tuple[int, int]]:
            used: dict[str, tuple[int, int]] = {}
            for rows in (kept, gone):
                for who, requests, tokens in session.connection().execute(rows):
                    person = str(who)
                    before = used.get(person, (0, 0))
                    used[person] = before[0] + int(requests), before[1] + int(tokens)
            return used

        return await self._database.search(work)

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


def _exchanges(session: Session, numbers: Sequence[int]) -> list[Exchange]:
    """The exchanges of these numbers, in their order; without what has been deleted since they were found."""
    rows = session.exec(select(ExchangeTable).where(col(ExchangeTable.number).in_(numbers)))
    by_number = {row.number: row for row in rows}
    return [to_exchange(by_number[number]) for number in numbers if number in by_number]


# What changes after the first snapshot. The rest stays, so that the indexes over it are not written again either.
MOVING = (
    "answer",
    "status",
    "finish_reason",
    "error",
    "model",  # these three: another one may be loaded while a request waits
    "quantization",
    "sampling",
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


def _save(session: Session, exchange: Exchange, process: str) -> None:
    """These two statements are made once: building one takes longer than running it."""
    values = to_values(exchange)
    connection = session.connection()
    if connection.execute(_MOVE_ON, {"which": exchange.id} | {name: values[name] for name in MOVING}).rowcount == 0:
        connection.execute(_INSERT, values | {"process": process})


def _log_failure(future: "asyncio.Future[None]") -> None:
    if not future.cancelled() and (error := future.exception()):
        logger.error("an exchange is not written: {}", error)
