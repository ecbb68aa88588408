"""An ExchangeFilter as conditions on exchanges, all but its text. Knows the tables of reviews, labels and feedback."""

import sqlalchemy as sa
from sqlmodel import col, select

from engine.types import ExchangeFilter, Status
from storage.models import LONG_WAIT, ExchangeTable, FeedbackRow, LabelRow, ReviewRow

Conditions = list[sa.ColumnElement[bool]]

_WHOLE = [str(status) for status in (Status.QUEUED, Status.RUNNING, Status.DONE)]


def conditions(filter: ExchangeFilter, dialect: str) -> Conditions:
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
    return [*found, *_reviewed(filter)]


def _reviewed(filter: ExchangeFilter) -> Conditions:
    """Few are rated, labelled or assigned: those are gathered. Nearly all are not done: those are passed over."""
    id = col(ExchangeTable.id)
    found: Conditions = []
    if filter.rating is not None:
        found.append(id.in_(select(FeedbackRow.exchange_id).where(col(FeedbackRow.rating) == filter.rating)))
    if filter.label is not None:
        found.append(id.in_(select(LabelRow.exchange_id).where(col(LabelRow.label) == filter.label)))
    if filter.assignee is not None:
        mine = select(ReviewRow.exchange_id).where(
            col(ReviewRow.assignee) == filter.assignee, col(ReviewRow.done_at).is_(None)
        )
        found.append(id.in_(mine))
    done = col(ReviewRow.done_at).is_not(None)
    if filter.reviewed:
        found.append(id.in_(select(ReviewRow.exchange_id).where(done)))
    elif filter.reviewed is False:
        found.append(~sa.exists().where(col(ReviewRow.exchange_id) == id, done))
        found.append(col(ExchangeTable.source) != "review")
    return found
