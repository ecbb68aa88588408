"""Erasing what a person wrote. What still runs or waits for them ends first, else it would be written afterwards.

Where an answer of another process does not end, nothing is erased: it would be left, and nobody would know.
"""

import asyncio

from ui.desk import Desk
from ui.elsewhere import elsewhere, ended, stop
from ui.i18n import Language


class StillAnswering(Exception):
    """Another process has not ended an answer of the person's in time."""


def why_not_erased(say: Language) -> str:
    return say("One of the answers has not ended yet, so nothing was erased. Try again in a moment.")


async def request_erasure(desk: Desk, user_id: str) -> None:
    """Hide the person's conversations from them, and note that they ask for erasure. Raises StillAnswering."""
    await end_answers(desk, user_id)
    await desk.store.erasures.request(user_id)


async def erase(desk: Desk, user_id: str) -> int:
    """Erase it for good; return how many exchanges went. Raises StillAnswering."""
    await end_answers(desk, user_id)
    return await desk.store.erasures.erase(user_id)


async def end_answers(desk: Desk, user_id: str) -> None:
    """End what runs and waits for this person, in whichever process. Raises StillAnswering."""
    jobs = [job for job in desk.service.jobs.values() if job.request.person == user_id]
    others = await elsewhere(desk, user_id)
    for job in jobs:
        desk.service.stop_job(job)
    for job in jobs:
        await job.closed()
    rows = await asyncio.gather(*(ended(desk, row.id, stop) for row in others))
    if not all(row is None or row.status.final for row in rows):
        raise StillAnswering
