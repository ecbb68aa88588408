"""Hashing passwords: argon2id on two threads of its own, never on the event loop. Knows nothing of accounts.

One hash takes tens of milliseconds and 64 MiB; more threads would only take memory and the model's cores.
"""

import asyncio
import os
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import ARGON2_VERSION

T = TypeVar("T")

MIN_LENGTH, MAX_LENGTH = 8, 200
MAX_WAITING = 40  # hashes in the line; more would keep everybody waiting for seconds


class TooManyHashes(Exception):
    """So many people sign in at once that this one has to try again."""


class Passwords:
    def __init__(self) -> None:
        self._hasher = PasswordHasher()
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="password")
        self._waiting = 0
        self._nobody = _fitted_by_none(self._hasher)  # so that unknown names take as long as known ones

    async def hash(self, password: str) -> str:
        return await self._run(self._hasher.hash, password)

    async def verify(self, stored: str | None, password: str) -> bool:
        """Whether the password fits. `stored` None (no such account) takes the same time and is False."""
        fits = await self._run(self._fits, stored or self._nobody, password)
        return fits and stored is not None

    def outdated(self, stored: str) -> bool:
        """Whether the hash was made with older parameters and should be made again."""
        return self._hasher.check_needs_rehash(stored)

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _fits(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False

    async def _run(self, work: Callable[..., T], *arguments: str) -> T:
        if self._waiting >= MAX_WAITING:
            raise TooManyHashes
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        finally:
            self._waiting -= 1


def _fitted_by_none(hasher: PasswordHasher) -> str:
    """What `hasher` might have made of some password, at random, and made at once."""
    salt, digest = (b64encode(os.urandom(size)).decode().rstrip("=") for size in (hasher.salt_len, hasher.hash_len))
    cost = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    return f"$argon2id$v={ARGON2_VERSION}${cost}${salt}${digest}"
