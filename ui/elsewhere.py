"""Answers that another process of this Qdesk gives: which there are, ending and moving them from here, following them.

    stop(desk, id)                               as its person's Stop would; `cancel` as their program, `overrule` as
                                                 an administrator
    move_to_front(desk, id)                      the next to run in the whole house
    await ended(desk, id, stop)                  tells it until its row is final, or nobody has ended it for PATIENCE_S
    async for exchange in followed(desk, row)    its row as it grows, the final one last

Their rows are in the database, a second old at most; what shall become of them is told by the bus. That may be lost
while the database is away: whoever waits for the end tells it again. With one process there are none, and nothing is
asked.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from loguru import logger

from engine.errors import EndedByAdministrator
from engine.shared_places import SharedPlaces
from engine.types import Exchange, Status
from ui.desk import Desk

if TYPE_CHECKING:
    from storage.records import ExchangeRow

STOP, CANCEL, OVERRULE, READ = "stop", "cancel", "overrule", "read"  # on the bus, with the id of an exchange
LOOK_EVERY_S = 1.0  # as often as a running answer is written down
PATIENCE_S, ENDED_EVERY_S, TELL_EVERY_S = 10.0, 0.1, 1.0


def listen(desk: Desk) -> None:
    """Do here what the other processes tell of answers that are this one's."""
    jobs, service = desk.service.jobs, desk.service

    def stop_here(id: str) -> None:
        if job := jobs.get(id):
            service.stop_job(job)

    def cancel_here(id: str) -> None:
        if job := jobs.get(id):
            service.end(job, Status.CANCELLED)

    def overrule_here(id: str) -> None:
        if job := jobs.get(id):
            service.end(job, Status.CANCELLED, EndedByAdministrator())

    def read_elsewhere(id: str) -> None:
        if job := jobs.get(id):
            job.read_elsewhere()

    desk.bus.on(STOP, stop_here)
    desk.bus.on(CANCEL, cancel_here)
    desk.bus.on(OVERRULE, overrule_here)
    desk.bus.on(READ, read_elsewhere)


async def elsewhere(desk: Desk, person: str | None = None) -> "list[ExchangeRow]":
    """What runs and waits in other processes, oldest first; of one person, or of everybody."""
    if desk.store.cluster is None:
        return []
    before = set(desk.service.jobs)  # one that ends here meanwhile is unfinished in what the database says
    rows = await desk.store.exchanges.unfinished(person)
    return [row for row in rows if row.id not in before and row.id not in desk.service.jobs]


def stop(desk: Desk, id: str) -> None:
    desk.bus.tell(STOP, id)


def cancel(desk: Desk, id: str) -> None:
    desk.bus.tell(CANCEL, id)


def overrule(desk: Desk, id: str) -> None:
    desk.bus.tell(OVERRULE, id)


def move_to_front(desk: Desk, id: str) -> bool:
    """Make what waits at another process the next to run. False: it does not wait there any more."""
    places = desk.service.places
    ticket = places.waiting_elsewhere(id) if isinstance(places, SharedPlaces) else None
    if ticket is None:
        return False
    desk.service.places.move_to_front(ticket)
    return True


async def ended(desk: Desk, id: str, tell: Callable[[Desk, str], None]) -> Exchange | None:
    """Its row when it has ended, or as it stands when that takes too long; None: there is none any more.

    `tell`, which is `stop`, `cancel` or `overrule`, is said again and again: the bus may lose it.
    """
    until, told_s = time.monotonic() + PATIENCE_S, -1e9
    while True:
        if time.monotonic() - told_s >= TELL_EVERY_S:
            tell(desk, id)
            told_s = time.monotonic()
        exchange = await desk.store.exchanges.get(id)
        if exchange is None or exchange.status.final or time.monotonic() > until:
            return exchange
        await asyncio.sleep(ENDED_EVERY_S)


async def followed(desk: Desk, exchange: Exchange) -> AsyncGenerator[Exchange, None]:
    """The row whenever it has changed, to its end. Whoever gives the answer hears that somebody reads it."""
    tell_every_s, told_s = desk.settings.abandoned_after_s / 3, -1e9
    while not exchange.status.final:
        if time.monotonic() - told_s >= tell_every_s:
            desk.bus.tell(READ, exchange.id)
            told_s = time.monotonic()
        await asyncio.sleep(LOOK_EVERY_S)
        try:
            row = await desk.store.exchanges.get(exchange.id) or replace(exchange, status=Status.INTERRUPTED)
        except Exception as error:  # the database is away; this goes on when it is back
            logger.debug("{} cannot be followed just now: {!r}", exchange.id, error)
            continue
        if row != exchange:
            exchange = row
            yield row
