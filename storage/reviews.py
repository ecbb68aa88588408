"""What reviewers do with an exchange: labels, notes, the answer as it should have been, who looks at it, and done.

Who is whom are user ids here. Retention takes all of it with the exchange; a method that names an exchange which is not
there returns False and changes nothing.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import new_id
from storage.database import Database
from storage.models import ExchangeTable, FeedbackRow, LabelRow, NoteRow, ReviewRow
from storage.records import Mark, Note, Review, ReviewCounts

MAX_LABEL, MAX_NOTE, MAX_CORRECTION = 40, 4000, 50_000  # characters


class Reviews:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def of(self, exchange_id: str) -> Review:
        """All that reviewers made of it; an empty review where nobody did anything."""
        return await self._database.read(lambda session: _review(session, exchange_id))

    async def marks(self, exchange_ids: Iterable[str]) -> dict[str, Mark]:
        """What a list shows of each, by exchange id; those without anything are left out."""
        ids = list(exchange_ids)
        return await self._database.read(lambda session: _marks(session, ids))

    async def label(self, exchange_id: str, label: str, by: str) -> bool:
        """Give a label; twice is once. False too for a label without a character."""
        name = " ".join(label.split())[:MAX_LABEL]

        def add(session: Session) -> None:
            if session.get(LabelRow, (exchange_id, name)) is None:
                session.add(LabelRow(exchange_id=exchange_id, label=name, by=by, at=datetime.now(UTC)))

        return bool(name) and await self._if_there(exchange_id, add)

    async def unlabel(self, exchange_id: str, label: str) -> bool:
        change = sa.delete(LabelRow).where(col(LabelRow.exchange_id) == exchange_id, col(LabelRow.label) == label)
        return await self._database.write(lambda session: session.exec(change).rowcount == 1)

    async def labels(self) -> list[str]:
        """Those in use, the most used first."""
        used = select(LabelRow.label).group_by(col(LabelRow.label))
        rows = used.order_by(sa.func.count().desc(), col(LabelRow.label))
        return await self._database.read(lambda session: list(session.exec(rows)))

    async def add_note(self, exchange_id: str, text: str, by: str) -> bool:
        """False too for a note without a character."""
        said = text.strip()[:MAX_NOTE]

        def add(session: Session) -> None:
            session.add(NoteRow(id=new_id(), exchange_id=exchange_id, by=by, text=said, at=datetime.now(UTC)))

        return bool(said) and await self._if_there(exchange_id, add)

    async def remove_note(self, id: str, by: str) -> bool:
        """False: this reviewer wrote no such note."""
        change = sa.delete(NoteRow).where(col(NoteRow.id) == id, col(NoteRow.by) == by)
        return await self._database.write(lambda session: session.exec(change).rowcount == 1)

    async def correct(self, exchange_id: str, answer: str) -> bool:
        """Keep the answer as it should have been; "" takes it back."""
        return await self._set(exchange_id, correction=answer.strip()[:MAX_CORRECTION])

    async def assign(self, exchange_id: str, reviewer: str | None) -> bool:
        return await self._set(exchange_id, assignee=reviewer)

    async def set_done(self, exchange_id: str, by: str | None) -> bool:
        """Done, by whom; None is not done."""
        return await self._set(exchange_id, done_by=by, done_at=datetime.now(UTC) if by else None)

    async def counts(self) -> ReviewCounts:
        """By reviewer: what is assigned and not done, and what is done. By label: how many."""

        def work(session: Session) -> ReviewCounts:
            to_do = col(ReviewRow.done_at).is_(None)
            return ReviewCounts(
                assigned=_counted(session, col(ReviewRow.assignee), to_do),
                done=_counted(session, col(ReviewRow.done_by)),
                labels=_counted(session, col(LabelRow.label)),
            )

        return await self._database.search(work)

    async def _set(self, exchange_id: str, **values: object) -> bool:
        def change(session: Session) -> None:
            row = session.get(ReviewRow, exchange_id) or ReviewRow(exchange_id=exchange_id)
            row.sqlmodel_update(values)
            session.add(row)

        return await self._if_there(exchange_id, change)

    async def _if_there(self, exchange_id: str, change: Callable[[Session], None]) -> bool:
        there = select(ExchangeTable.number).where(col(ExchangeTable.id) == exchange_id)

        def work(session: Session) -> bool:
            if session.exec(there).first() is None:
                return False
            change(session)
            return True

        return await self._database.write(work)


def _review(session: Session, exchange_id: str) -> Review:
    row = session.get(ReviewRow, exchange_id) or ReviewRow(exchange_id=exchange_id)
    labels = select(LabelRow.label).where(col(LabelRow.exchange_id) == exchange_id).order_by(col(LabelRow.at))
    notes = select(NoteRow).where(col(NoteRow.exchange_id) == exchange_id).order_by(col(NoteRow.at), col(NoteRow.id))
    return Review(
        labels=tuple(session.exec(labels)),
        notes=tuple(Note(id=note.id, by=note.by, text=note.text, at=note.at) for note in session.exec(notes)),
        correction=row.correction,
        assignee=row.assignee,
        done_at=row.done_at,
        done_by=row.done_by,
    )


def _marks(session: Session, ids: list[str]) -> dict[str, Mark]:
    reviews = {r.exchange_id: r for r in session.exec(select(ReviewRow).where(col(ReviewRow.exchange_id).in_(ids)))}
    rated = select(FeedbackRow.exchange_id, FeedbackRow.rating).where(col(FeedbackRow.exchange_id).in_(ids))
    ratings = dict(session.exec(rated).all())
    labels: dict[str, list[str]] = {}
    for row in session.exec(select(LabelRow).where(col(LabelRow.exchange_id).in_(ids)).order_by(col(LabelRow.at))):
        labels.setdefault(row.exchange_id, []).append(row.label)
    marks = {}
    for id in reviews.keys() | ratings.keys() | labels.keys():
        review = reviews.get(id) or ReviewRow(exchange_id=id)
        marks[id] = Mark(
            rating=ratings.get(id),  # type: ignore[arg-type]  # only Rating is ever written
            labels=tuple(labels.get(id, ())),
            correction=review.correction,
            assignee=review.assignee,
            done=review.done_at is not None,
        )
    return marks


def _counted(session: Session, by: Any, *which: sa.ColumnElement[bool]) -> dict[str, int]:
    rows = sa.select(by, sa.func.count()).where(by.is_not(None), *which).group_by(by)
    return {str(name): count for name, count in session.connection().execute(rows)}
