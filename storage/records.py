"""What the store hands out: frozen dataclasses, detached from any database session, safe on any thread.

Times are aware UTC datetimes. `Exchange` and `ExchangeFilter` are from `engine.types`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, TypeVar

from engine.types import Exchange, ExchangeFilter, Sampling, Source, Status

T = TypeVar("T")

UserRole = Literal["staff", "reviewer", "admin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    id: str
    name: str  # what one signs in with; unique without regard to case
    role: UserRole
    disabled: bool
    language: str  # "en", "zh" or "" = the browser's
    theme: str  # "light", "dark" or "" = the system's
    created_at: datetime
    last_seen_at: datetime | None
    max_requests: int | None = None  # running and waiting at once; None = as everybody


@dataclass(frozen=True, slots=True, kw_only=True)
class Invite:
    """A link that lets somebody make one account."""

    id: str
    name: str  # of the account; "" = the invited person chooses
    role: UserRole
    invited_by: str  # user name
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    user: User
    agent: str  # the browser, as it names itself
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    id: str
    user_id: str
    name: str
    prefix: str  # the first characters, to tell keys apart; never the key
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    id: str
    user_id: str
    title: str  # "" until the first question
    system_prompt: str | None  # None = the server's
    sampling: Sampling | None  # None = the server's
    head_id: str | None  # the newest exchange of the branch that is shown
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One conversation found by a search, with the text around the match ("" when the title matched)."""

    conversation: Conversation
    snippet: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRow:
    """One line of a list of exchanges: who asked, with the beginnings of prompt and answer (200 characters)."""

    id: str
    user_name: str  # "" for the operator's fixed key
    source: Source
    status: Status
    conversation_id: str | None
    prompt: str
    answer: str
    model: str
    queued_at: datetime
    queue_s: float | None
    ttft_s: float | None
    total_s: float | None
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    id: int
    at: datetime
    actor: str  # user name, "" for the server itself
    action: str  # "review.search", "review.open", "request.cancel", "user.create", ...
    target: str
    detail: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A piece of a long list, newest first. `next` is the cursor of the following piece, None at the end."""

    items: list[T]
    next: str | None


__all__ = [
    "ApiKey",
    "AuditEntry",
    "Conversation",
    "Exchange",
    "ExchangeFilter",
    "ExchangeRow",
    "Hit",
    "Invite",
    "Page",
    "Session",
    "User",
    "UserRole",
]
