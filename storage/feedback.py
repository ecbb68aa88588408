"""What people think of the answers they got: good or bad, with a reason and a comment where they gave them.

Only the person who asked may rate an answer, so there is one rating at most for an exchange. Retention takes it with
its exchange. Knows nothing of who may read it.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from storage.database import Database
from storage.models import ExchangeTable, FeedbackRow
from storage.records import Feedback, Rating, Reason

Ratings = list[Feedback]  # the method `list` hides the type inside the class
CHUNK = 500  # ids in one query


class FeedbackGiven:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def set(
        self, exchange_id: str, user_id: str, rating: Rating, *, reason: Reason = "", comment: str = ""
    ) -> bool:
        """Rate an answer, or change what was said of it. False: this person asked no such question."""
        asked = select(ExchangeTable.id).where(
            col(ExchangeTable.id) == exchange_id, col(ExchangeTable.person) == user_id
        )

        def work(session: Session) -> bool:
            if session.exec(asked).first() is None:
                return False
            session.merge(
                FeedbackRow(
                    exchange_id=exchange_id,
                    user_id=user_id,
                    rating=rating,
                    reason=reason,
                    comment=comment,
                    at=datetime.now(UTC),
                )
            )
            return True

        return await self._database.write(work)

    async def remove(self, exchange_id: str, user_id: str) -> bool:
        """Take it back. False: this person had rated no such answer."""
        change = sa.delete(FeedbackRow).where(
            col(FeedbackRow.exchange_id) == exchange_id, col(FeedbackRow.user_id) == user_id
        )
        return await self._database.write(lambda session: session.exec(change).rowcount == 1)

    async def of(self, exchange_ids: Iterable[str]) -> dict[str, Feedback]:
        """By exchange id, for those that are rated. Anybody's: the caller knows who may see them."""
        ids = list(exchange_ids)

        def work(session: Session) -> dict[str, Feedback]:
            found: dict[str, Feedback] = {}
            for start in range(0, len(ids), CHUNK):
                rows = select(FeedbackRow).where(col(FeedbackRow.exchange_id).in_(ids[start : start + CHUNK]))
                found |= {row.exchange_id: _feedback(row) for row in session.exec(rows)}
            return found

        return await self._database.read(work)

    async def list(self, user_id: str) -> Ratings:
        """All that a person has rated, newest first."""
        rows = (
            select(FeedbackRow)
            .where(col(FeedbackRow.user_id) == user_id)
            .order_by(col(FeedbackRow.at).desc(), col(FeedbackRow.exchange_id))
        )
        return await self._database.read(lambda session: [_feedback(row) for row in session.exec(rows)])


def _feedback(row: FeedbackRow) -> Feedback:
    return Feedback(
        exchange_id=row.exchange_id,
        user_id=row.user_id,
        rating=row.rating,  # type: ignore[arg-type]  # only Rating is ever written
        reason=row.reason,  # type: ignore[arg-type]  # only Reason is ever written
        comment=row.comment,
        at=row.at,
    )
