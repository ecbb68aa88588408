"""The tables, as SQLModel classes. A change here needs a migration; a test compares the two.

Knows nothing of connections or threads. Rows never leave this package: each subject's file turns them into records.

Why JSON text for `messages` and `sampling`: both are written and read whole and never filtered by, `stop` is a list,
and a new sampling value needs no migration.
"""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import Dialect
from sqlmodel import Field, SQLModel

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class PlainText(sa.types.TypeDecorator[str]):
    """Text that every database takes.

    A JSON body may carry NUL characters and lone surrogates. PostgreSQL refuses the former and UTF-8 the latter, and
    the record must not be lost for it.
    """

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else plain(value)


def plain(text: str) -> str:
    """Text without NUL characters and lone surrogates; U+FFFD stands where they were."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


class Base(SQLModel):
    metadata = sa.MetaData(naming_convention=NAMING)


def text(*, default: Any = ..., **column: Any) -> Any:
    return Field(default, sa_type=PlainText, **column)


LONG_WAIT = {  # by kind of database; queries must say it in the very same words to be answered by the index
    "sqlite": "julianday(coalesce(started_at, finished_at)) - julianday(queued_at) >= 10 / 86400.0",
    "postgresql": "coalesce(started_at, finished_at) - queued_at >= interval '10 seconds'",
}


def where(conditions: dict[str, str]) -> dict[str, Any]:
    """Options of an index over some rows only."""
    return {f"{name}_where": sa.text(condition) for name, condition in conditions.items()}


class UserRow(Base, table=True):
    __tablename__ = "users"
    id: str = text(primary_key=True)
    name: str = text()
    name_key: str = text(unique=True)  # the name without regard to case
    password_hash: str = text()
    role: str = text()
    disabled: bool = False
    language: str = text(default="")
    theme: str = text(default="")
    created_at: datetime
    last_seen_at: datetime | None = None
    system_prompt: str | None = text(default=None)  # for new conversations
    sampling: str | None = text(default=None)  # the same; JSON
    max_requests: int | None = None  # None = as everybody


class SessionRow(Base, table=True):
    __tablename__ = "sessions"
    id: str = text(primary_key=True)
    user_id: str = text(foreign_key="users.id", index=True)
    token_hash: str = text(unique=True)
    agent: str = text()
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime = Field(index=True)


class ApiKeyRow(Base, table=True):
    __tablename__ = "api_keys"
    id: str = text(primary_key=True)
    user_id: str = text(foreign_key="users.id", index=True)
    name: str = text()
    key_hash: str = text(unique=True)
    prefix: str = text()
    created_at: datetime
    last_used_at: datetime | None = None


class ConversationRow(Base, table=True):
    __tablename__ = "conversations"
    __table_args__ = (sa.Index(None, "user_id", "updated_at", "id"),)
    id: str = text(primary_key=True)
    user_id: str = text(foreign_key="users.id")
    title: str = text()
    system_prompt: str | None = text(default=None)
    sampling: str | None = text(default=None)  # JSON
    head_id: str | None = text(default=None)  # no foreign key: retention may take the exchange
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None
    titled: bool = False  # the title is a person's or the model's; else it is the first words
    pinned: bool = False
    folder: str = text(default="")
    archived_at: datetime | None = None
    forked_from: str | None = text(default=None)  # an exchange of another conversation; no foreign key, as above


class RemovedTurnRow(Base, table=True):
    """An exchange that its owner no longer wants to see in this conversation. The log keeps it."""

    __tablename__ = "removed_turns"
    conversation_id: str = text(primary_key=True, foreign_key="conversations.id")
    exchange_id: str = text(primary_key=True, index=True)  # no foreign key, as above
    removed_at: datetime


class ExchangeTable(Base, table=True):
    """`number` is a real integer key because the search index refers to rows by it, and VACUUM renumbers others.

    `ix_exchanges_log` holds all that lists are filtered by, so that rows with their long texts are read only to be
    shown.
    """

    __tablename__ = "exchanges"
    __table_args__ = (
        sa.Index("ix_exchanges_log", "queued_at", "id", "person", "source", "status", "finish_reason", "model"),
        sa.Index("ix_exchanges_long_wait", "queued_at", "id", **where(LONG_WAIT)),
        sa.Index("ix_exchanges_rerun", "parent_id", **where(dict.fromkeys(LONG_WAIT, "source = 'review'"))),
        sa.Index(None, "person", "queued_at", "id"),
        sa.Index(None, "conversation_id", "queued_at", "id"),
        sa.Index(None, "status", "queued_at", "id"),
        {"sqlite_autoincrement": True},
    )
    number: int | None = Field(default=None, primary_key=True)
    id: str = text(unique=True)
    person: str | None = text(default=None, foreign_key="users.id")
    source: str = text()
    conversation_id: str | None = text(default=None, foreign_key="conversations.id")
    parent_id: str | None = text(default=None)  # no foreign key: retention may take the exchange
    prompt: str = text()  # the last message again, for lists and search
    messages: str = text()  # JSON, as sent
    answer: str = text()
    status: str = text()
    finish_reason: str | None = text(default=None)
    error: str | None = text(default=None)
    model: str = text()
    quantization: str = text()
    sampling: str = text()  # JSON
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    queue_depth: int
    queued_at: datetime
    started_at: datetime | None = None
    first_token_at: datetime | None = None
    finished_at: datetime | None = None
    end_user: str = text(default="")
    request_metadata: str = text(default="{}")  # JSON, as a program sent it


class IdempotencyRow(Base, table=True):
    """A key under which a program asked, so that asking again under it finds the same exchanges."""

    __tablename__ = "idempotency_keys"
    caller: str = text(primary_key=True)  # a user's id; "" for the operator's fixed key
    key: str = text(primary_key=True)
    body_hash: str = text()
    exchange_ids: str = text()  # JSON; no foreign key: retention may take the exchange
    created_at: datetime = Field(index=True)


class FeedbackRow(Base, table=True):
    """What the person who asked thinks of an answer. Goes with its exchange."""

    __tablename__ = "feedback"
    exchange_id: str = text(primary_key=True, foreign_key="exchanges.id", ondelete="CASCADE")
    user_id: str = text(foreign_key="users.id", index=True)
    rating: int = Field(index=True)  # 1 or -1
    reason: str = text()
    comment: str = text()
    at: datetime


class TemplateRow(Base, table=True):
    """A text to begin a question with: one's own, or everybody's."""

    __tablename__ = "templates"
    id: str = text(primary_key=True)
    user_id: str = text(foreign_key="users.id", index=True)  # whose it is; of a shared one, who made it
    shared: bool = Field(default=False, index=True)
    name: str = text()
    text: str = text()
    updated_at: datetime


class ErasureRow(Base, table=True):
    """Who has asked for the erasure of what they wrote, and has not got it yet."""

    __tablename__ = "erasures"
    user_id: str = text(primary_key=True, foreign_key="users.id")
    at: datetime


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


class AuditRow(Base, table=True):
    __tablename__ = "audit"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: int | None = Field(default=None, primary_key=True)
    at: datetime
    actor: str = text(index=True)
    action: str = text(index=True)
    target: str = text()
    detail: str = text()


class OptionRow(Base, table=True):
    __tablename__ = "options"
    name: str = text(primary_key=True)
    value: str = text()


class SampleRow(Base, table=True):
    """A minute. Counts and sketches of durations are JSON: they are read whole and added up in Python."""

    __tablename__ = "samples"
    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(index=True)
    seconds: float
    running: float
    running_peak: int
    waiting: float
    waiting_peak: int
    tokens: int
    ended: str = text()
    refused: str = text()
    ttft: str = text()
    gaps: str = text()
    queue: str = text()
    cpu: float | None = None
    memory: int | None = Field(default=None, sa_type=sa.BigInteger)
    gpu: float | None = None
    gpu_memory: int | None = Field(default=None, sa_type=sa.BigInteger)


class InviteRow(Base, table=True):
    """Deleted once it is used; the audit trail keeps who invited whom."""

    __tablename__ = "invites"
    id: str = text(primary_key=True)
    token_hash: str = text(unique=True)
    name: str = text()
    role: str = text()
    invited_by: str = text()
    created_at: datetime
    expires_at: datetime
