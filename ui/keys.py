"""API keys: who calls with one, and who has to know when it is revoked.

    caller = await keys.caller(key)                 whose key it is, or None
    keys.on_revoked(caller.key_id, user_id, callback)

The store is asked at every call, so a revoked key opens nothing any more. What was begun with it hears of the end by
`on_revoked`: at once when it is revoked here, within `recheck`'s time when that was done past this process.
"""

import asyncio
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ui.people import Caller
from ui.seal import Seal, same

if TYPE_CHECKING:
    from storage import Store

PREFIX = "sk-qdesk-"
SEEN_EVERY = timedelta(minutes=1)  # how exact "last used" is

Forget = Callable[[], None]


class Keys:
    def __init__(self, store: "Store", seal: Seal, operator_key: str) -> None:
        self._store, self._seal, self._operator_key = store, seal, operator_key
        self._watchers: dict[tuple[str, str], set[Callable[[], None]]] = {}  # by key id and user id
        self._tasks: set[asyncio.Task[None]] = set()
        self._revoked: set[str] = set()  # ids of keys that were revoked while this process ran

    async def make(self, user_id: str, name: str) -> str:
        """Return a new API key; this is the only time that anybody sees it."""
        key = PREFIX + secrets.token_urlsafe(32)
        await self._store.api_keys.create(user_id, name, self._seal("api key", key), key[: len(PREFIX) + 4])
        return key

    async def caller(self, key: str) -> Caller | None:
        """Who calls with this key."""
        if self._operator_key and same(key, self._operator_key):
            return Caller(None)
        found = await self._store.api_keys.find(self._seal("api key", key))
        if found is None:
            return None
        known, user = found
        if known.last_used_at is None or datetime.now(UTC) - known.last_used_at >= SEEN_EVERY:
            task = asyncio.create_task(self._store.api_keys.seen(known.id), name="a key was used")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return Caller(user, key_id=known.id)

    async def revoke(self, key_id: str, user_id: str) -> None:
        """Revoke a person's own key; what runs with it is told. Somebody else's key is as unknown as none."""
        if await self._store.api_keys.revoke(key_id, user_id):
            self._tell(key_id, user_id)

    def on_revoked(self, key_id: str, user_id: str, callback: Callable[[], None]) -> Forget:
        """Call back once the key is revoked, at once if it is already; the returned function forgets the callback."""
        if key_id in self._revoked:
            callback()
        watched = (key_id, user_id)
        self._watchers.setdefault(watched, set()).add(callback)

        def forget() -> None:
            watchers = self._watchers.get(watched, set())
            watchers.discard(callback)
            if not watchers:
                self._watchers.pop(watched, None)

        return forget

    async def recheck(self) -> None:
        """Tell of keys that were revoked past this process."""
        for user_id in {user_id for _, user_id in self._watchers}:
            kept = {key.id for key in await self._store.api_keys.list(user_id)}
            for key_id, owner in list(self._watchers):
                if owner == user_id and key_id not in kept:
                    self._tell(key_id, user_id)

    def _tell(self, key_id: str, user_id: str) -> None:
        self._revoked.add(key_id)
        for callback in self._watchers.pop((key_id, user_id), set()):
            callback()
