"""Which exchanges a filter means, newest first, a piece at a time, in a log of any length.

Two ways lead through a large log. The walk goes back in time along an index that holds all that is filtered by, and
reads the texts only of what is left over. The index's way asks SQLite's trigram index, which gives row numbers from the
newest down, and looks at each row's other fields. A text is looked for on the index's way, unless the other fields
leave so few rows that the walk reads them all at once. Up to SORTED hits are then put into the order of their time;
more than that stay in the order in which they were recorded, which is the same but for the clock's moods. The cursor
says how its page was found: two parts by time, one by number. PostgreSQL always walks, and its planner finds the hits
by the index of storage/text_index.py where they are few.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from engine.types import ExchangeFilter, Status
from storage.filters import MARKS, Conditions, conditions, having, not_leading, within
from storage.models import ExchangeTable, UserRow
from storage.paging import before, before_number, decode, encode
from storage.records import ExchangeRow
from storage.search import UNFINISHED, contains, in_index, in_rows, snippet, words
from storage.text_index import FINAL

SHOWN = 200  # characters of prompt and answer in a list
SORTED = 200  # hits that are put into the order of their time; more come in the order in which they were recorded
FEW = 5000  # rows that are looked at one by one sooner than an index answers
LONG_GONE = 50_000  # rows that came since

_NUMBER = col(ExchangeTable.number)
_PLACE = (_NUMBER, col(ExchangeTable.queued_at), col(ExchangeTable.id))
_INDEX = sa.table("exchanges_search", sa.column("rowid", sa.Integer))


@dataclass(frozen=True, slots=True)
class Piece:
    numbers: list[int]
    next: str | None


@dataclass(slots=True)
class Listing:
    """Answers one filter in one database session. `indexed`: there is a trigram index."""

    session: Session
    filter: ExchangeFilter
    indexed: bool
    _passed_over: Set[str] = field(init=False)  # fields whose index must not lead

    def __post_init__(self) -> None:
        self._passed_over = not_leading(self.session, self.filter, FEW)

    def piece(self, limit: int, cursor: str | None) -> Piece:
        """The numbers of the next `limit` rows. Raises ValueError for a cursor that is not one."""
        if not (self.indexed and words(self.filter.text)):
            return self._walk(limit, cursor)
        if cursor is not None and len(decode(cursor, 1, 2)) == 1:
            found = self._found(limit + 1, cursor)
            return self._walk(limit, cursor) if found is None else _cut(found, limit)
        if (few := self._few()) is not None:
            which = [_NUMBER.in_(few), *self._conditions(), *self._texts()]
            return self._walk(limit, cursor, which) if few else Piece([], None)
        most = max(SORTED, limit)
        found = self._found(most + 1)
        if found is not None and len(found) <= most:
            return self._walk(limit, cursor, [_NUMBER.in_(found)])
        return self._walk(limit, cursor) if found is None or cursor else _cut(found, limit)

    def _walk(self, limit: int, cursor: str | None, which: Conditions | None = None) -> Piece:
        texts = self._texts()
        asked = which if which is not None else [*self._conditions(), *self._within(), *texts]
        meant: sa.Select[*tuple[Any, ...]] = sa.select(*_PLACE).where(
            *asked, *before(ExchangeTable.queued_at, ExchangeTable.id, cursor)
        )
        if texts and self._dialect == "postgresql":  # whose index holds what is final; the few others are added
            halves = (meant.where(half) for half in (sa.text(FINAL), col(ExchangeTable.status).in_(UNFINISHED)))
            meant = sa.select(*sa.union_all(*(_newest(half, limit + 1) for half in halves)).subquery().c)
        found = self.session.connection().execute(_newest(meant, limit + 1)).all()
        last = found[limit - 1] if len(found) > limit else None
        next = encode([last.queued_at.isoformat(), last.id]) if last else None
        return Piece([row.number for row in found[:limit]], next)

    def _found(self, most: int, cursor: str | None = None) -> list[int] | None:
        """The numbers that the index gives, from the newest down; None: it is of no help.

        Rows that are not final are not in the index; there are few, and they are looked through.
        """
        query = in_index(self.session, self.filter.text)
        if query is None:
            return None
        by_number: sa.Select[Any] = sa.select(_NUMBER).order_by(_NUMBER.desc()).limit(most)
        texts, after = in_rows(self.filter.text, sqlite=True), before_number(ExchangeTable.number, cursor)
        running = by_number.where(col(ExchangeTable.status).in_(UNFINISHED), *self._conditions(), *texts, *after)
        found = [*self._scalars(running), *self._scalars(self._in_index(*query, most, cursor))]
        return sorted(found, reverse=True)[:most]

    def _in_index(self, query: str, rest: list[str], most: int, cursor: str | None) -> sa.Select[Any]:
        """The plus signs keep SQLite from joining the other way round, row by row into the index."""
        rowid = _INDEX.c.rowid
        match = sa.literal_column("exchanges_search").op("MATCH")(query)
        rows = sa.select(rowid).where(match, *self._between(), *before_number(rowid, cursor))  # type: ignore[arg-type]  # a column as well
        others = [*self._conditions(), *(_either(word) for word in rest)]
        if others:
            same = sa.literal_column("+exchanges_search.rowid", sa.Integer) == _NUMBER
            rows = rows.join(ExchangeTable, same).where(*others)
        return rows.order_by(rowid.desc()).limit(most)

    def _between(self) -> Conditions:
        """The numbers that a time leaves, and whatever is long gone, so that the index need not be read beyond them."""
        asked = ExchangeFilter(since=self.filter.since, until=self.filter.until)
        times = conditions(asked, self._dialect)
        leaving = [rows.where(*times) for rows in having(self.filter).values() if self._is_long_gone(rows)]
        found = Conditions()
        for rows in [*leaving, *([sa.select(_NUMBER).where(*times)] if times else [])]:
            numbers = rows.subquery().c.number
            first, last = self.session.connection().execute(sa.select(sa.func.min(numbers), sa.func.max(numbers))).one()
            found += [_INDEX.c.rowid >= (first or 0), _INDEX.c.rowid <= (last or 0)]
        return found

    def _is_long_gone(self, rows: sa.Select[Any]) -> bool:
        """Whether so much came after the newest of these that it is worth knowing all their numbers."""
        newest = rows.order_by(col(ExchangeTable.queued_at).desc(), col(ExchangeTable.id).desc()).limit(1)
        (last,) = self._scalars(sa.select(sa.func.max(_NUMBER)))
        return max([0, *self._scalars(newest)]) < (last or 0) - LONG_GONE

    def _few(self) -> Sequence[int] | None:
        """The numbers of what all but the text and the marks that are looked up leaves, if those are few."""
        unmarked = replace(self.filter, **dict.fromkeys(self._passed_over & {*MARKS}))  # type: ignore[arg-type]  # marks may be None
        others = conditions(unmarked, self._dialect, self._passed_over)
        if not others:
            return None
        numbers = self._scalars(sa.select(_NUMBER).where(*others, *self._within()).limit(FEW + 1))
        return numbers if len(numbers) <= FEW else None

    def _conditions(self) -> Conditions:
        return conditions(self.filter, self._dialect, self._passed_over)

    def _within(self) -> Conditions:
        return within(self.filter, self._passed_over) if self._dialect == "sqlite" else []

    def _texts(self) -> Conditions:
        return in_rows(self.filter.text, sqlite=self._dialect == "sqlite")

    def _scalars(self, rows: sa.Select[Any]) -> Sequence[int]:
        return self.session.connection().execute(rows).scalars().all()

    @property
    def _dialect(self) -> str:
        return self.session.get_bind().dialect.name


def _newest(rows: sa.Select[*tuple[Any, ...]], most: int) -> sa.Select[*tuple[Any, ...]]:
    columns = rows.selected_columns
    return rows.order_by(columns.queued_at.desc(), columns.id.desc()).limit(most)


def _cut(numbers: list[int], limit: int) -> Piece:
    return Piece(numbers[:limit], encode([str(numbers[limit - 1])]) if len(numbers) > limit else None)


def _either(word: str) -> sa.ColumnElement[bool]:
    return sa.or_(*(contains(column, word, sqlite=True) for column in (ExchangeTable.prompt, ExchangeTable.answer)))


def lines(session: Session, numbers: Sequence[int], text: str = "") -> list[ExchangeRow]:
    """The rows of these numbers, in their order, with the snippets around what `text` looks for.

    What has been deleted since the numbers were found is left out: to PostgreSQL each statement is a moment of its own.
    """
    whole: list[sa.ColumnElement[Any]] = [
        col(ExchangeTable.prompt).label("all_prompt"),
        col(ExchangeTable.answer).label("all_answer"),
    ]
    rows = (
        sa.select(*_COLUMNS, *(whole if text else []))
        .outerjoin(UserRow, col(UserRow.id) == col(ExchangeTable.person))
        .where(_NUMBER.in_(numbers))
    )
    by_number = {row.number: row for row in session.connection().execute(rows)}
    return [_line(by_number[number], text) for number in numbers if number in by_number]


_COLUMNS = [
    _NUMBER,
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


def _line(row: sa.Row[*tuple[Any, ...]], text: str) -> ExchangeRow:
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
        snippet=snippet([row.all_prompt, row.all_answer], text) if text else "",
        model=row.model,
        queued_at=row.queued_at,
        queue_s=after_s(row.started_at),
        ttft_s=after_s(row.first_token_at),
        total_s=after_s(row.finished_at),
        prompt_tokens=row.prompt_tokens,
        completion_tokens=row.completion_tokens,
    )
