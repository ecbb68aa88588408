"""An ExchangeFilter as conditions on exchanges, all but its text. Knows the tables of reviews, labels and feedback.

What few exchanges have leads to them by its index. What many have must not, since all of them would be read, and
sorted: each exchange that something else leads to is looked at.
"""

from collections.abc import Set
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import ExchangeFilter
from storage.models import CUT_OFF, LONG_WAIT, Base, ExchangeTable, FeedbackRow, LabelRow, PlainText, ReviewRow

Conditions = list[sa.ColumnElement[bool]]

_COLUMNS = Base.metadata.tables["exchanges"].c
MARKS = ("rating", "label", "assignee")  # which stand in tables of their own
IN_ORDER = ("person", "status")  # the first that is asked for may lead even where many have it: to the newest of them


def conditions(filter: ExchangeFilter, dialect: str, passed_over: Set[str] = frozenset()) -> Conditions:
    """`passed_over` names the fields whose index must not lead; see `not_leading`."""
    table = ExchangeTable
    found: Conditions = []
    if filter.since is not None:
        found.append(col(table.queued_at) >= filter.since)
    if filter.until is not None:
        found.append(col(table.queued_at) < filter.until)
    for name, value in _values(filter).items():
        found.append(_column(name, by_index=dialect != "sqlite" or name not in passed_over) == value)
    if filter.cut_off:
        found.append(sa.text(CUT_OFF))  # type: ignore[arg-type]  # a condition in the index's own words
    if filter.long_wait:
        found.append(sa.text(LONG_WAIT[dialect]))  # type: ignore[arg-type]  # the same
    return [*found, *_reviewed(filter, passed_over)]


def not_leading(session: Session, filter: ExchangeFilter, most: int) -> Set[str]:
    """Those of the filter's fields whose index must not lead to its exchanges.

    Where one of them has `most` exchanges or fewer, it is all but the rarest; else what `most` is too little for.
    """
    counts = {
        name: sa.select(sa.func.count()).select_from(rows.limit(most + 1).subquery())
        for name, rows in (_marks(filter) | having(filter)).items()
    }
    have = {name: session.connection().execute(count).scalar_one() for name, count in counts.items()}
    rarest = min(have, key=have.__getitem__, default=None)
    if rarest is not None and have[rarest] <= most:
        return have.keys() - {rarest}
    return have.keys() - {next((name for name in IN_ORDER if name in have), "")}


def within(filter: ExchangeFilter, passed_over: Set[str]) -> Conditions:
    """What leaves nothing out: from the oldest to the newest that has each of the values whose index must not lead.

    So a walk through the log begins where somebody was there, or a model was in use.
    """
    queued_at, found = _COLUMNS["queued_at"], Conditions()
    for name, value in _values(filter).items():
        if name in passed_over:
            has_it = _column(name) == value
            ends = (sa.select(end(queued_at)).where(has_it).correlate(None) for end in (sa.func.min, sa.func.max))
            oldest, newest = (end.scalar_subquery() for end in ends)
            found += [queued_at >= oldest, queued_at <= newest]
    return found


def having(filter: ExchangeFilter) -> dict[str, Any]:
    """The numbers of the exchanges that have the value that is asked for, by the field."""
    number = sa.select(_COLUMNS["number"])
    return {name: number.where(_column(name) == value) for name, value in _values(filter).items()}


def _values(filter: ExchangeFilter) -> dict[str, str | None]:
    """What a column must be, by its name, which is the filter's field too. A person "" is the fixed key's: nobody."""
    asked = {name: getattr(filter, name) for name in ("person", "status", "source", "model")}
    return {name: value if value or name != "person" else None for name, value in asked.items() if value is not None}


def _column(name: str, *, by_index: bool = True) -> sa.ColumnElement[Any]:
    """The plus sign keeps SQLite, which does not know how many have a value, from starting with the column's index."""
    return _COLUMNS[name] if by_index else sa.literal_column(f"+exchanges.{name}", PlainText)


def _marks(filter: ExchangeFilter) -> dict[str, Any]:
    """Which exchanges have the mark that is asked for, by the field."""
    ids = {
        "rating": select(FeedbackRow.exchange_id).where(col(FeedbackRow.rating) == filter.rating),
        "label": select(LabelRow.exchange_id).where(col(LabelRow.label) == filter.label),
        "assignee": select(ReviewRow.exchange_id).where(
            col(ReviewRow.assignee) == filter.assignee, col(ReviewRow.done_at).is_(None)
        ),
    }
    return {name: rows for name, rows in ids.items() if getattr(filter, name) is not None}


def _reviewed(filter: ExchangeFilter, passed_over: Set[str]) -> Conditions:
    """Nearly all exchanges are not done: those are passed over."""
    id = col(ExchangeTable.id)
    found: Conditions = []
    for name, rows in _marks(filter).items():
        looked_up = rows.where(rows.selected_columns[0] == id).exists()
        found.append(looked_up if name in passed_over else id.in_(rows))
    done = col(ReviewRow.done_at).is_not(None)
    if filter.reviewed:
        found.append(id.in_(select(ReviewRow.exchange_id).where(done)))
    elif filter.reviewed is False:
        found.append(~sa.exists().where(col(ReviewRow.exchange_id) == id, done))
        found.append(col(ExchangeTable.source) != "review")
    return found
