"""Erasing what a person wrote. What still runs or waits for them ends first, else it would be written afterwards."""

from ui.desk import Desk
from ui.elsewhere import elsewhere, ended, stop


async def request_erasure(desk: Desk, user_id: str) -> None:
    """Hide the person's conversations from them, and note that they ask for erasure."""
    await _end_all(desk, user_id)
    await desk.store.erasures.request(user_id)


async def erase(desk: Desk, user_id: str) -> int:
    """Erase it for good; return how many exchanges went."""
    await _end_all(desk, user_id)
    return await desk.store.erasures.erase(user_id)


async def _end_all(desk: Desk, user_id: str) -> None:
    jobs = [job for job in desk.service.jobs.values() if job.request.person == user_id]
    others = await elsewhere(desk, user_id)
    for job in jobs:
        desk.service.stop_job(job)
    for row in others:
        stop(desk, row.id)
    for job in jobs:
        await job.closed()
    for row in others:
        await ended(desk, row.id)
