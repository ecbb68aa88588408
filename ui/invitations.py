"""Invitations: a link with a token that lets somebody make one account, once, and for a few days.

Only the token's seal is stored, so that whoever reads the database can open no invitation. Knows nothing of pages.
"""

import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from starlette.requests import HTTPConnection

from ui.desk import Desk

if TYPE_CHECKING:
    from storage.records import Invite, User, UserRole

LASTS = timedelta(days=3)


async def invite(desk: Desk, name: str, role: "UserRole", by: str) -> str:
    """Return the token of a new invitation; this is the only time that anybody sees it."""
    token = secrets.token_urlsafe(32)
    expires_at = datetime.now(UTC) + LASTS
    await desk.store.invites.create(_sealed(desk, token), name=name, role=role, invited_by=by, expires_at=expires_at)
    return token


async def invitation(desk: Desk, token: str) -> "Invite | None":
    return await desk.store.invites.find(_sealed(desk, token)) if token else None


async def accept(desk: Desk, token: str, name: str, password: str) -> "User | Literal['taken', 'over']":
    """Make the account, which uses the invitation up. Raises TooManyHashes."""
    hashed = await desk.auth.passwords.hash(password)
    return await desk.store.invites.accept(_sealed(desk, token), name, hashed)


def link_of(desk: Desk, token: str, asked: HTTPConnection) -> str:
    """What to send to the invited person: this server as the operator names it, else as the asker's browser does."""
    base = desk.settings.public_url.rstrip("/") or str(asked.base_url).rstrip("/")
    return f"{base}/invite?token={token}"


def _sealed(desk: Desk, token: str) -> str:
    return desk.auth.seal("invite", token)
