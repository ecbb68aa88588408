"""Conversations, the exchanges in them, and what the person who asked thinks of an answer."""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field

from storage.models.base import Base, text, where

LONG_WAIT = {  # by kind of database; queries must say it in the very same words to be answered by the index
    "sqlite": "julianday(coalesce(started_at, finished_at)) - julianday(queued_at) >= 10 / 86400.0",
    "postgresql": "coalesce(started_at, finished_at) - queued_at >= interval '10 seconds'",
}
CUT_OFF = (  # the same; coalesce keeps SQLite from gathering and sorting all of a status
    "(coalesce(status, '') NOT IN ('queued', 'running', 'done') OR coalesce(finish_reason, '') = 'length')"
)


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


class ExchangeTable(Base, table=True):
    """`number` is a real integer key because the search index refers to rows by it, and VACUUM renumbers others.

    `ix_exchanges_log` holds all that lists are filtered by, so that rows with their long texts are read only to be
    shown. Those of `source` and `model` are for the rare ones among them: storage/filters.py.
    """

    __tablename__ = "exchanges"
    __table_args__ = (
        sa.Index("ix_exchanges_log", "queued_at", "id", "person", "source", "status", "finish_reason", "model"),
        sa.Index("ix_exchanges_long_wait", "queued_at", "id", **where(LONG_WAIT)),
        sa.Index("ix_exchanges_cut_off", "queued_at", "id", **where(dict.fromkeys(LONG_WAIT, CUT_OFF))),
        sa.Index("ix_exchanges_rerun", "parent_id", **where(dict.fromkeys(LONG_WAIT, "source = 'review'"))),
        sa.Index(None, "person", "queued_at", "id"),
        sa.Index(None, "conversation_id", "queued_at", "id"),
        sa.Index(None, "status", "queued_at", "id"),
        sa.Index(None, "source", "queued_at", "id"),
        sa.Index(None, "model", "queued_at", "id"),
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
    process: str = text(default="")  # which of several processes on this database answers it


class RemovedTurnRow(Base, table=True):
    """An exchange that its owner no longer wants to see in this conversation. The log keeps it."""

    __tablename__ = "removed_turns"
    conversation_id: str = text(primary_key=True, foreign_key="conversations.id")
    exchange_id: str = text(primary_key=True, index=True)  # no foreign key, as above
    removed_at: datetime


class FeedbackRow(Base, table=True):
    """What the person who asked thinks of an answer. Goes with its exchange."""

    __tablename__ = "feedback"
    exchange_id: str = text(primary_key=True, foreign_key="exchanges.id", ondelete="CASCADE")
    user_id: str = text(foreign_key="users.id", index=True)
    rating: int = Field(index=True)  # 1 or -1
    reason: str = text()
    comment: str = text()
    at: datetime


class IdempotencyRow(Base, table=True):
    """A key under which a program asked, so that asking again under it finds the same exchanges."""

    __tablename__ = "idempotency_keys"
    caller: str = text(primary_key=True)  # a user's id; "" for the operator's fixed key
    key: str = text(primary_key=True)
    body_hash: str = text()
    exchange_ids: str = text()  # JSON; no foreign key: retention may take the exchange
    created_at: datetime = Field(index=True)
