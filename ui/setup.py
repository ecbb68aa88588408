"""The first account: made by a link that the server prints while there is none; it opens once, and for a day.

Two who follow the link at the same moment make one account: the store lets the first through alone. Knows no pages.
"""

import secrets
import time
from typing import TYPE_CHECKING

from ui.passwords import Passwords
from ui.seal import Seal, same

if TYPE_CHECKING:
    from storage import Store
    from storage.records import User

LASTS_S = 24 * 3600.0
OPTION = "setup"


class Setup:
    def __init__(self, store: "Store", passwords: Passwords, seal: Seal) -> None:
        self.token: str | None = None  # opens /setup
        self._store, self._passwords, self._seal = store, passwords, seal
        self._until = 0.0

    async def open(self, admin_password: str) -> None:
        """Without an account: make `admin` with this password, or a token that lets somebody make the first one."""
        if await self._store.users.count():
            return
        if admin_password:
            await self._store.users.create_first("admin", await self._passwords.hash(admin_password))
        elif self._store.cluster:
            self.token, lasts_s = await self._shared_token()
            self._until = time.monotonic() + lasts_s
        else:
            self.token, self._until = secrets.token_urlsafe(32), time.monotonic() + LASTS_S

    async def _shared_token(self) -> tuple[str, float]:
        """The token that all processes on this database print, and how long it lasts.

        It is the seal of a word that the first of them stores, so the database alone opens nothing.
        """
        word = f"{secrets.token_urlsafe(32)} {time.time() + LASTS_S}"
        kept = await self._store.options.once(OPTION, word, lambda other: time.time() < float(other.split()[1]))
        return self._seal("setup", kept), float(kept.split()[1]) - time.time()

    def opens(self, token: str) -> bool:
        return self.token is not None and time.monotonic() < self._until and same(token, self.token)

    async def make(self, name: str, password: str) -> "User | None":
        """Make the first administrator; None when there is one already. Raises TooManyHashes."""
        user = await self._store.users.create_first(name, await self._passwords.hash(password))
        self.token = None
        return user
