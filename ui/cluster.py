"""This process among several on one database: it gives signs of life, and takes over what the others change.

Sessions, keys, accounts, limits, pause and banner are read again from the store when another process has changed them;
what is only in memory (sign-in tries, calls) is told whole. With one process none of this runs. Knows no pages.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from loguru import logger
from nicegui import background_tasks

from engine.shared_places import SharedPlaces
from ui.banner import apply_stored_banner
from ui.bus import ALL
from ui.desk import Desk
from ui.limits import apply_stored_limits
from ui.steering import apply_own_limits, apply_stored_intake

if TYPE_CHECKING:
    from storage.cluster import Cluster

APPLIES: dict[str, Callable[[Desk], Awaitable[None]]] = {
    "limits": apply_stored_limits,
    "own_limits": apply_own_limits,
    "intake": apply_stored_intake,
    "banner": apply_stored_banner,
}


def join_in(desk: Desk) -> None:
    """What the start calls: listen and live, where this database is shared."""
    cluster, places = desk.store.cluster, desk.service.places
    if cluster is None or not isinstance(places, SharedPlaces):
        return
    for topic, apply in APPLIES.items():
        _on(desk, topic, lambda apply=apply: apply(desk))  # type: ignore[misc]  # mypy sees no type in such a default
    _on(desk, "access", desk.auth.recheck)
    for topic in ("places", ALL):
        desk.bus.on(topic, lambda _: places.changed())
    loop = asyncio.get_running_loop()

    def hear(topic: str, text: str) -> None:
        loop.call_soon_threadsafe(desk.bus.hear, topic, text)

    cluster.listen(hear)
    background_tasks.create(_live(cluster, places), name="signs of life")


def _on(desk: Desk, topic: str, work: Callable[[], Awaitable[None]]) -> None:
    """Do this work when another process tells of the topic, or may have."""

    async def do() -> None:
        try:
            await work()
        except Exception as error:
            logger.warning("{} of another process are not taken over: {!r}", topic, error)

    def begin(_: str) -> None:
        background_tasks.create_lazy(do(), name=f"take over {topic}")

    desk.bus.on(topic, begin)
    desk.bus.on(ALL, begin)


async def _live(cluster: "Cluster", places: SharedPlaces) -> None:
    while True:
        try:
            members = await cluster.beat()
            places.keep_only({member.id for member in members})
        except Exception as error:
            logger.warning("no sign of life could be given: {!r}", error)
        await asyncio.sleep(cluster.heartbeat_s)
