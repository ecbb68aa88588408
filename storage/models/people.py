"""Accounts, and what belongs to one of them."""

from datetime import datetime

from sqlmodel import Field

from storage.models.base import Base, text


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
    totp_nonce: str = text(default="")  # what the second step's secret is derived from; "" = no second step
    totp_step: int = 0  # the newest step of time whose code was used


class RecoveryCodeRow(Base, table=True):
    """A code that stands in for the authenticator app once; deleted when it is used."""

    __tablename__ = "recovery_codes"
    user_id: str = text(primary_key=True, foreign_key="users.id")
    code_hash: str = text(primary_key=True)


class IdentityRow(Base, table=True):
    """Who an account is elsewhere: the subject of an OpenID provider, or the entry of a directory."""

    __tablename__ = "identities"
    issuer: str = text(primary_key=True)
    subject: str = text(primary_key=True)
    user_id: str = text(foreign_key="users.id", index=True)
    created_at: datetime


class SignInLinkRow(Base, table=True):
    """Deleted once it is used."""

    __tablename__ = "sign_in_links"
    token_hash: str = text(primary_key=True)
    user_id: str = text(foreign_key="users.id")
    expires_at: datetime


class SessionRow(Base, table=True):
    __tablename__ = "sessions"
    id: str = text(primary_key=True)
    user_id: str = text(foreign_key="users.id", index=True)
    token_hash: str = text(unique=True)
    agent: str = text()
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime = Field(index=True)
    id_token: str = text(default="")  # by which an OpenID provider knows which of its sessions it was; "" = none


class ApiKeyRow(Base, table=True):
    __tablename__ = "api_keys"
    id: str = text(primary_key=True)
    user_id: str = text(foreign_key="users.id", index=True)
    name: str = text()
    key_hash: str = text(unique=True)
    prefix: str = text()
    created_at: datetime
    last_used_at: datetime | None = None


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
