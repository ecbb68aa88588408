"""The `limits` library's moving windows on the monotonic clock: a clock that is set neither locks out nor lets in.

Its own storage goes by the time of day, so that a clock set back by an hour refuses people for that hour.
"""

import time
from collections import deque

from limits.storage import MemoryStorage

SWEEP_AT = 10_000  # keys in memory before those that are over are looked for


class SteadyStorage(MemoryStorage):
    """In memory, for MovingWindowRateLimiter. Times that it tells are time.monotonic()."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: dict[str, deque[float]] = {}  # by key, the oldest first
        self._expiries: dict[str, int] = {}

    def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        calls = self._within(key, expiry)
        if len(calls) + amount > limit:
            return False
        if len(self._calls) >= SWEEP_AT:
            self._sweep()
        self._calls[key], self._expiries[key] = calls, expiry
        calls.extend([time.monotonic()] * amount)
        return True

    def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """When the oldest call in the window was, and how many there are."""
        calls = self._within(key, expiry)
        return (calls[0] if calls else time.monotonic()), len(calls)

    def clear(self, key: str) -> None:
        self._calls.pop(key, None)
        self._expiries.pop(key, None)

    def _within(self, key: str, expiry: int) -> deque[float]:
        calls = self._calls.get(key, deque())
        while calls and calls[0] <= time.monotonic() - expiry:
            calls.popleft()
        return calls

    def _sweep(self) -> None:
        for key in [key for key in self._calls if not self._within(key, self._expiries[key])]:
            self.clear(key)
