"""This process among several on one database: it gives signs of life, and takes over what the others change.

Sessions, keys, accounts, limits, pause and banner are read again from the store when another process has changed them;
what is only in memory (sign-in tries, calls) is told whole, by the bus, and so is what is to become of answers
(ui/elsewhere.py). With one process none of this runs. Knows no pages.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING

from loguru import logger

from engine.shared_places import SharedPlaces
from ui.banner import apply_stored_banner
from ui.bus import ALL
from ui.desk import Desk
from ui.elsewhere import listen
from ui.limits import apply_stored_limits
from ui.steering import apply_own_limits, apply_stored_intake

if TYPE_CHECKING:
    from storage.cluster import Cluster


async def apply_access(desk: Desk) -> None:
    await desk.auth.recheck()


APPLIES: dict[str, Callable[[Desk], Awaitable[None]]] = {  # by what the store tells of a change
    "limits": apply_stored_limits,
    "own_limits": apply_own_limits,
    "intake": apply_stored_intake,
    "banner": apply_stored_banner,
    "access": apply_access,
}


class Sharing:
    """Runs from `start`, on the event loop, to `stop`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Listen and live, where this database is shared."""
        cluster, places, bus = self._desk.store.cluster, self._desk.service.places, self._desk.bus
        if cluster is None or not isinstance(places, SharedPlaces):
            return
        for topic, apply in APPLIES.items():
            changed = asyncio.Event()
            for heard in (topic, ALL):
                bus.on(heard, lambda _, changed=changed: changed.set())  # type: ignore[misc]  # mypy cannot tell its type
            self._begin(self._take_over(topic, changed, apply), f"take over {topic}")
        listen(self._desk)
        for heard in ("places", ALL):
            bus.on(heard, lambda _: places.changed())
        self._begin(_live(cluster, places), "signs of life")
        loop = asyncio.get_running_loop()

        def hear(topic: str, text: str) -> None:
            loop.call_soon_threadsafe(bus.hear, topic, text)

        cluster.listen(hear)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _take_over(self, topic: str, changed: asyncio.Event, apply: Callable[[Desk], Awaitable[None]]) -> None:
        while True:
            await changed.wait()
            changed.clear()
            try:
                await apply(self._desk)
            except Exception as error:
                logger.warning("{} of another process are not taken over: {!r}", topic, error)

    def _begin(self, work: Coroutine[None, None, None], name: str) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))


async def _live(cluster: "Cluster", places: SharedPlaces) -> None:
    while True:
        try:
            members = await cluster.beat()
            places.keep_only({member.id for member in members})
        except Exception as error:
            logger.warning("no sign of life could be given: {!r}", error)
        await asyncio.sleep(cluster.heartbeat_s)
