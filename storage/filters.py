"""An ExchangeFilter as conditions on exchanges, all but its text. Knows the tables of reviews, labels and feedback."""

from collections.abc import Mapping, Set
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import ExchangeFilter, Status
from storage.models import LONG_WAIT, ExchangeTable, FeedbackRow, LabelRow, ReviewRow

Conditions = list[sa.ColumnElement[bool]]

_WHOLE = [str(status) for status in (Status.QUEUED, Status.RUNNING, Status.DONE)]


def conditions(filter: ExchangeFilter, dialect: str, common: Set[str] = frozenset()) -> Conditions:
    """`common` names the marks that many exchanges have; see `common_marks`."""
    table = ExchangeTable
    found: Conditions = []
    if filter.person is not None:
        found.append(col(table.person) == (filter.person or None))
    if filter.since is not None:
        found.append(col(table.queued_at) >= filter.since)
    if filter.until is not None:
        found.append(col(table.queued_at) < filter.until)
    if filter.status is not None:
        found.append(col(table.status) == str(filter.status))
    if filter.source is not None:
        found.append(col(table.source) == filter.source)
    if filter.model is not None:
        found.append(col(table.model) == filter.model)
    if filter.cut_off:
        # coalesce keeps SQLite from gathering and sorting all of a status instead of walking the log
        cut = sa.func.coalesce(col(table.finish_reason), "") == "length"
        found.append(sa.or_(sa.func.coalesce(col(table.status), "").not_in(_WHOLE), cut))
    if filter.long_wait:
        found.append(sa.text(LONG_WAIT[dialect]))  # type: ignore[arg-type]  # a condition in the index's own words
    return [*found, *_reviewed(filter, common)]


def common_marks(session: Session, filter: ExchangeFilter, most: int) -> Set[str]:
    """Those of the filter's rating, label and assignee that more than `most` exchanges have.

    What few have leads to its exchanges. What many have must not, since all of them would be read and sorted: each
    exchange that something else leads to is looked up there.
    """
    counts = {
        name: sa.select(sa.func.count()).select_from(rows.limit(most + 1).subquery())
        for name, rows in _marks(filter).items()
    }
    return {name for name, count in counts.items() if session.connection().execute(count).scalar_one() > most}


def _marks(filter: ExchangeFilter) -> Mapping[str, Any]:
    """Which exchanges have what is asked for, by the field of the filter."""
    ids = {
        "rating": select(FeedbackRow.exchange_id).where(col(FeedbackRow.rating) == filter.rating),
        "label": select(LabelRow.exchange_id).where(col(LabelRow.label) == filter.label),
        "assignee": select(ReviewRow.exchange_id).where(
            col(ReviewRow.assignee) == filter.assignee, col(ReviewRow.done_at).is_(None)
        ),
    }
    return {name: rows for name, rows in ids.items() if getattr(filter, name) is not None}


def _reviewed(filter: ExchangeFilter, common: Set[str]) -> Conditions:
    """Nearly all exchanges are not done: those are passed over."""
    id = col(ExchangeTable.id)
    found: Conditions = []
    for name, rows in _marks(filter).items():
        looked_up = rows.where(rows.selected_columns[0] == id).exists()
        found.append(looked_up if name in common else id.in_(rows))
    done = col(ReviewRow.done_at).is_not(None)
    if filter.reviewed:
        found.append(id.in_(select(ReviewRow.exchange_id).where(done)))
    elif filter.reviewed is False:
        found.append(~sa.exists().where(col(ReviewRow.exchange_id) == id, done))
        found.append(col(ExchangeTable.source) != "review")
    return found
