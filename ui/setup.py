"""The first account: made by a link that the server prints while there is none; it opens once, and for a day.

Two who follow the link at the same moment make one account: the store lets the first through alone. Knows no pages.
"""

import secrets
import time
from typing import TYPE_CHECKING

from ui.passwords import Passwords
from ui.seal import same

if TYPE_CHECKING:
    from storage import Store
    from storage.records import User

LASTS_S = 24 * 3600.0


class Setup:
    def __init__(self, store: "Store", passwords: Passwords) -> None:
        self.token: str | None = None  # opens /setup
        self._store, self._passwords = store, passwords
        self._until = 0.0

    async def open(self, admin_password: str) -> None:
        """Without an account: make `admin` with this password, or a token that lets somebody make the first one."""
        if await self._store.users.count():
            return
        if admin_password:
            await self._store.users.create_first("admin", await self._passwords.hash(admin_password))
        else:
            self.token, self._until = secrets.token_urlsafe(32), time.monotonic() + LASTS_S

    def opens(self, token: str) -> bool:
        return self.token is not None and time.monotonic() < self._until and same(token, self.token)

    async def make(self, name: str, password: str) -> "User | None":
        """Make the first administrator; None when there is one already. Raises TooManyHashes."""
        user = await self._store.users.create_first(name, await self._passwords.hash(password))
        self.token = None
        return user
