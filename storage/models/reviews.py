"""What reviewers make of exchanges, what is held, and what is left of those that are deleted."""

from datetime import datetime

from storage.models.base import Base, text


class ReviewRow(Base, table=True):
    """What reviewers made of an exchange; none before somebody did something. Goes with its exchange."""

    __tablename__ = "reviews"
    exchange_id: str = text(primary_key=True, foreign_key="exchanges.id", ondelete="CASCADE")
    correction: str = text(default="")  # the answer as it should have been
    assignee: str | None = text(default=None, foreign_key="users.id", index=True)
    done_at: datetime | None = None
    done_by: str | None = text(default=None, foreign_key="users.id", index=True)


class LabelRow(Base, table=True):
    __tablename__ = "labels"
    exchange_id: str = text(primary_key=True, foreign_key="exchanges.id", ondelete="CASCADE")
    label: str = text(primary_key=True, index=True)
    by: str = text(foreign_key="users.id")
    at: datetime


class NoteRow(Base, table=True):
    __tablename__ = "notes"
    id: str = text(primary_key=True)
    exchange_id: str = text(foreign_key="exchanges.id", ondelete="CASCADE", index=True)
    by: str = text(foreign_key="users.id")
    text: str = text()
    at: datetime


class HoldRow(Base, table=True):
    """What retention and erasing leave alone: an exchange, a conversation, or all of a person's."""

    __tablename__ = "holds"
    kind: str = text(primary_key=True)
    target: str = text(primary_key=True)  # id
    reason: str = text()
    by: str = text()  # user name
    at: datetime


class DailyUseRow(Base, table=True):
    """Totals of exchanges that are deleted, so that deleting changes no count."""

    __tablename__ = "daily_use"
    person: str = text(primary_key=True)  # user id; "" is the operator's fixed key
    day: str = text(primary_key=True)  # 2026-11-29, in UTC
    requests: int
    prompt_tokens: int
    completion_tokens: int
