"""A link that signs in to one account, once: the operator's way in where passwords or a provider are none."""

import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ui.seal import Seal

if TYPE_CHECKING:
    from storage import Store
    from storage.records import User

LASTS = timedelta(minutes=10)


async def new_link(store: "Store", seal: Seal, user: "User") -> str:
    """Return the path with a new token; only its seal is stored."""
    token = secrets.token_urlsafe(32)
    await store.sign_in_links.create(seal("sign-in link", token), user.id, datetime.now(UTC) + LASTS)
    return f"/login/link?token={token}"


async def owner_of(store: "Store", seal: Seal, token: str) -> "User | None":
    """Whom the link signs in as. None too when it was used, or is too old."""
    user = await store.sign_in_links.find(seal("sign-in link", token))
    return None if user is None or user.disabled else user


async def use(store: "Store", seal: Seal, token: str) -> "User | None":
    """The same, and the link is used up."""
    user = await store.sign_in_links.use(seal("sign-in link", token))
    return None if user is None or user.disabled else user
