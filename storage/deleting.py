"""Deleting exchanges so that nothing of their text is left: rows, search index, free pages and write-ahead log.

Totals for each person and day stay behind, and what is held stays whole. Knows nothing of why something is deleted.
"""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

import sqlalchemy as sa
from sqlmodel import Session, col, select

from storage.database import Database
from storage.models import ConversationRow, DailyUseRow, ExchangeTable, HoldRow, RemovedTurnRow
from storage.search import UNFINISHED

CHUNK = 500  # rows that are deleted in one transaction
MERGE_PAGES = 500  # pages of the search index that are tidied in one transaction

Condition = sa.ColumnElement[bool]


@dataclass(frozen=True, slots=True)
class Due:
    """What of one kind is older than it may become: how much would go, and how much stays because it is held."""

    goes: int
    held: int = 0


def old(when: datetime) -> Condition:
    return col(ExchangeTable.queued_at) < when


def used_before(when: datetime) -> Condition:
    return col(ConversationRow.updated_at) < when


def of_person(user_id: str) -> Condition:
    """What this person asked, and what reviewers ran again of it."""
    again = sa.select(ExchangeTable.id).where(col(ExchangeTable.person) == user_id)  # type: ignore[call-overload]  # a column
    table = ExchangeTable
    rerun = sa.and_(col(table.source) == "review", col(table.parent_id).in_(again.correlate(None)))
    return sa.or_(col(table.person) == user_id, rerun)


def held() -> Condition:
    """Whether an exchange, its conversation or its person is held."""

    def is_held(kind: str, target: object) -> Condition:
        return sa.exists().where(col(HoldRow.kind) == kind, col(HoldRow.target) == target)

    table = ExchangeTable
    return sa.or_(
        is_held("exchange", col(table.id)),
        is_held("exchange", sa.case((col(table.source) == "review", col(table.parent_id)))),  # a rerun of a held one
        is_held("conversation", col(table.conversation_id)),
        is_held("person", col(table.person)),
    )


def ended() -> Condition:
    return col(ExchangeTable.status).not_in(UNFINISHED)


def count(session: Session, *which: Condition) -> int:
    rows = sa.select(sa.func.count()).select_from(ExchangeTable).where(*which)
    return int(session.connection().execute(rows).scalar_one())


async def delete(database: Database, which: Condition) -> int:
    """Delete what has ended and is not held of the exchanges that are meant; return how many they were."""
    deleted = 0
    while chunk := await database.write(lambda session: _delete_chunk(session, which)):
        deleted += chunk
    if deleted:
        await forget(database)
    return deleted


async def forget(database: Database) -> None:
    """Take deleted text out of the search index and the write-ahead log."""
    pages = -MERGE_PAGES  # negative begins to merge the whole index into one, which drops deleted text
    while await database.write(partial(_merge_index, pages=pages)):
        pages = MERGE_PAGES
    await database.empty_log()


def empty_conversations(session: Session, which: Condition) -> None:
    """Take title and settings from conversations that have no exchanges left.

    The row stays, so that an exchange which a forgotten page still sends there finds it.
    """
    used = sa.exists().where(col(ExchangeTable.conversation_id) == col(ConversationRow.id))
    session.exec(
        sa.update(ConversationRow)
        .where(which, ~used)
        .values(title="", folder="", system_prompt=None, sampling=None, head_id=None, deleted_at=datetime.now(UTC))
    )


def _delete_chunk(session: Session, which: Condition) -> int:
    table = ExchangeTable
    rows = sa.select(
        col(table.number),
        col(table.id),
        col(table.person),
        col(table.source),
        col(table.queued_at),
        col(table.prompt_tokens),
        col(table.completion_tokens),
    ).where(which, ended(), ~held())
    found = session.connection().execute(rows.limit(CHUNK)).all()
    ids = [row.id for row in found]
    session.exec(sa.update(ConversationRow).where(col(ConversationRow.head_id).in_(ids)).values(head_id=None))
    session.exec(sa.delete(RemovedTurnRow).where(col(RemovedTurnRow.exchange_id).in_(ids)))
    session.exec(sa.delete(ExchangeTable).where(col(ExchangeTable.number).in_([row.number for row in found])))
    totals: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in found:
        if row.source == "import":  # it was not asked for here
            continue
        total = totals[row.person or "", f"{row.queued_at:%Y-%m-%d}"]
        for at, value in enumerate((1, row.prompt_tokens, row.completion_tokens)):
            total[at] += value
    for (person, day), counts in totals.items():
        _add_to_day(session, person, day, *counts)
    return len(found)


def _add_to_day(session: Session, person: str, day: str, requests: int, prompt: int, completion: int) -> None:
    same = select(DailyUseRow).where(col(DailyUseRow.person) == person, col(DailyUseRow.day) == day)
    row = session.exec(same).first() or DailyUseRow(
        person=person, day=day, requests=0, prompt_tokens=0, completion_tokens=0
    )
    row.requests += requests
    row.prompt_tokens += prompt
    row.completion_tokens += completion
    session.add(row)


def _merge_index(session: Session, pages: int) -> bool:
    """Merge a piece of the search index. False: there was nothing left to do, or there is no index.

    FTS5's own option "secure-delete" would spare this, but SQLite before 3.42 cannot read the index any more then.
    """
    connection = session.connection()
    if not sa.inspect(connection).has_table("exchanges_search"):
        return False
    before: int = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
    merge = sa.text("INSERT INTO exchanges_search (exchanges_search, rank) VALUES ('merge', :pages)")
    connection.execute(merge, {"pages": pages})
    after: int = connection.exec_driver_sql("SELECT total_changes()").scalar_one()
    return after - before >= 2
