"""The banner that administrators put on every page: what it says, how loud, until when.

    desk.board.now                      what is up at this moment, or None
    desk.board.watch(callback)          told of every change, also when its time is over; the returned call ends that

Kept over restarts. Its text is people's and is shown as text alone. Knows nothing of pages; lives on the event loop.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, get_args

from loguru import logger

if TYPE_CHECKING:
    from ui.desk import Desk

OPTION = "banner"
LONGEST = 300  # characters

Level = Literal["info", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Banner:
    text: str
    level: Level = "info"
    until: datetime | None = None  # None = until somebody takes it down

    def over(self) -> bool:
        return self.until is not None and datetime.now(UTC) >= self.until


class Board:
    """Where the banner hangs."""

    def __init__(self) -> None:
        self._banner: Banner | None = None
        self._watchers: set[Callable[[], None]] = set()
        self._takes_down: asyncio.TimerHandle | None = None

    @property
    def now(self) -> Banner | None:
        return None if self._banner is None or self._banner.over() else self._banner

    def show(self, banner: Banner | None) -> None:
        """Put this banner up in the place of whatever is there; None takes it down."""
        if self._takes_down:
            self._takes_down.cancel()
            self._takes_down = None
        self._banner = banner
        if banner and banner.until:
            seconds = (banner.until - datetime.now(UTC)).total_seconds()
            self._takes_down = asyncio.get_running_loop().call_later(max(0.0, seconds), self.show, None)
        for watcher in tuple(self._watchers):
            try:
                watcher()
            except Exception as error:  # a page that is going away
                logger.opt(exception=error).error("a page could not show the banner")

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        self._watchers.add(watcher)
        return lambda: self._watchers.discard(watcher)


async def keep_banner(desk: "Desk", banner: Banner | None) -> None:
    """Put it up at once, and again at every start until its time is over."""
    await desk.store.options.set(OPTION, _written(banner) if banner else "")
    desk.board.show(banner)


async def apply_stored_banner(desk: "Desk") -> None:
    """What the start calls, and a change in another process. What cannot be read is passed over with a warning."""
    if not (stored := await desk.store.options.get(OPTION)):
        if desk.board.now:
            desk.board.show(None)
        return
    try:
        banner = _read(stored)
    except (ValueError, TypeError, KeyError) as error:
        logger.warning("the stored banner is passed over: {!r}", error)
        return
    if not banner.over():
        desk.board.show(banner)


def _written(banner: Banner) -> str:
    until = banner.until.isoformat() if banner.until else None
    return json.dumps({"text": banner.text, "level": banner.level, "until": until}, ensure_ascii=False)


def _read(stored: str) -> Banner:
    values = json.loads(stored)
    until = datetime.fromisoformat(values["until"]) if values["until"] else None
    if values["level"] not in get_args(Level) or not isinstance(values["text"], str) or (until and not until.tzinfo):
        raise ValueError(stored)
    return Banner(values["text"], values["level"], until)
