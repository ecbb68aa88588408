"""Giving memory back to the system when pages have closed.

A page is a web of objects that point at each other, which waits for Python's garbage collector; and what C's allocator
has got it keeps, unless it is asked. Both are asked here, once no more pages close and nothing is being answered, for a
collection takes the event loop a moment.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable

from nicegui import background_tasks

QUIET_S = 3.0  # after the last page has closed


class GivingBack:
    def __init__(self, busy: Callable[[], bool]) -> None:
        """`busy` tells whether something is being answered."""
        self._busy = busy
        self._closed = 0
        self._watch: asyncio.Task[None] | None = None

    def page_closed(self) -> None:
        self._closed += 1
        if self._watch is None:
            self._watch = background_tasks.create(self._when_quiet(), name="give memory back")

    async def _when_quiet(self) -> None:
        seen = -1
        while seen != self._closed or self._busy():
            seen = self._closed
            await asyncio.sleep(QUIET_S)
        self._watch = None
        gc.collect()
        _trim()


def _trim() -> None:
    """Ask glibc; other systems' allocators give back by themselves, or cannot be asked."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return
    trim(0)
