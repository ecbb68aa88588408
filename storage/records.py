"""What the store hands out: frozen dataclasses, detached from any database session, safe on any thread.

Times are aware UTC datetimes. `Exchange` and `ExchangeFilter` are from `engine.types`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Literal, TypeVar

from engine.types import Exchange, ExchangeFilter, Sampling, Source, Status

T = TypeVar("T")

UserRole = Literal["staff", "reviewer", "admin"]
Rating = Literal[1, -1]
Reason = Literal[
    "", "correct", "helpful", "clear", "incorrect", "incomplete", "ignored", "style", "harmful", "other"
]  # "": none was given; the first three go with a good answer
Shelf = Literal["recent", "kept", "archived"]  # kept: pinned or in a folder


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
    second_step: bool = False  # whether a code is asked for after the password


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondFactor:
    """What a person's codes are checked against. Holds no secret."""

    nonce: str
    recovery_codes: int  # that are left


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
    titled: bool = False  # the title was given by a person or the model; else it is the first words
    pinned: bool = False
    folder: str = ""  # a name of the person's own; "" is none
    archived: bool = False
    deleted: bool = False  # by its owner, who sees it no more
    forked_from: str | None = None  # the exchange of another conversation with which this one begins


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
    snippet: str  # around the first hit of a search; "" without one
    model: str
    queued_at: datetime
    queue_s: float | None
    ttft_s: float | None
    total_s: float | None
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What the person who asked thinks of an answer."""

    exchange_id: str
    user_id: str
    rating: Rating
    reason: Reason
    comment: str
    at: datetime  # when it was given or last changed


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A text to begin a question with. `{{names}}` in it are for the person to fill in."""

    id: str
    user_id: str  # whose it is; of a shared one, who made it
    shared: bool  # everybody's; administrators look after these
    name: str
    text: str
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """Somebody asks that what they wrote be erased."""

    user_id: str
    user_name: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Somebody opened an exchange of somebody else's in the log."""

    at: datetime
    reader: str  # user name
    title: str  # of the conversation, "" where it has none
    prompt: str  # its beginning (200 characters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    id: str
    by: str  # user id
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What reviewers made of one exchange. `assignee` and `done_by` are user ids."""

    labels: tuple[str, ...]
    notes: tuple[Note, ...]
    correction: str  # the answer as it should have been; "" where nobody wrote one
    assignee: str | None
    done_at: datetime | None
    done_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The short form of a review, with what the person thought of the answer, for lists and files."""

    rating: Rating | None = None
    labels: tuple[str, ...] = ()
    correction: str = ""
    assignee: str | None = None
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewCounts:
    assigned: dict[str, int]  # by user id; not done yet
    done: dict[str, int]  # by user id
    labels: dict[str, int]


HoldKind = Literal["exchange", "conversation", "person"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    kind: HoldKind
    target: str  # id
    reason: str
    by: str  # user name
    at: datetime


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
    "Erasure",
    "Exchange",
    "ExchangeFilter",
    "ExchangeRow",
    "Feedback",
    "Hit",
    "Hold",
    "HoldKind",
    "Invite",
    "Mark",
    "Note",
    "Page",
    "Rating",
    "Reading",
    "Reason",
    "Review",
    "ReviewCounts",
    "Session",
    "Shelf",
    "Template",
    "User",
    "UserRole",
]
