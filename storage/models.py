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


class ExchangeTable(Base, table=True):
    """`number` is a real integer key because the search index refers to rows by it, and VACUUM renumbers others."""

    __tablename__ = "exchanges"
    __table_args__ = (
        sa.Index(None, "queued_at", "id"),
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
