"""GET /v1/requests and POST /v1/requests/{id}/cancel: what runs and waits. One's own; all of it for administrators.

Of several processes each lists its own; cancelling reaches all of them. Never shows a prompt. Somebody else's request
is as unknown as one that does not exist.
"""

import asyncio
from typing import Any

from loguru import logger
from nicegui import app
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from engine.job import Job
from engine.types import Exchange, Status
from ui.access import ACTIONS
from ui.api.described import AllRunning, Cancelled, replies
from ui.api.errors import ApiError
from ui.auth import Caller
from ui.desk import Desk

ENDS = "end"  # on the bus: somebody who may has cancelled this request
LOOK_EVERY_S, LOOKS = 0.2, 50


def register(desk: Desk) -> None:
    def end_here(id: str) -> None:
        if job := desk.service.jobs.get(id):
            desk.service.end(job, Status.CANCELLED)

    desk.bus.on(ENDS, end_here)

    @app.get("/v1/requests", tags=["requests"], responses=replies(AllRunning))
    async def requests(request: Request) -> Response:
        """Running and waiting requests, in order of arrival."""
        caller = request.state.caller
        names = (
            {user.id: user.name for user in await desk.store.users.list()}
            if caller.may(ACTIONS["request.others"])
            else {}
        )
        seen = [told(job, names) for job in desk.service.jobs.values() if owns(caller, job.request.person)]
        return JSONResponse({"object": "list", "data": seen})

    @app.post("/v1/requests/{id}/cancel", tags=["requests"], responses=replies(Cancelled, 404))
    async def cancel(request: Request, id: str) -> Response:
        """End a request that runs or waits; it keeps its text so far. The completion's id is taken too."""
        caller, id = request.state.caller, id.removeprefix("chatcmpl-")
        job = desk.service.jobs.get(id)
        asked = job.request if job else await elsewhere(desk, id)
        if asked is None or not owns(caller, asked.person):
            raise ApiError(404, "There is no such request running or waiting.", param="id", code="request_not_found")
        if job:
            desk.service.end(job, Status.CANCELLED)
            await job.closed()
            status = job.status
        else:
            status = await end_elsewhere(desk, id)
        if asked.person != caller.person:
            logger.info("request {} cancelled by {}", id, caller.name or "the operator")
            await desk.store.audit.add(caller.name, "request.cancel", id, "by API")
        return JSONResponse({"id": id, "object": "request", "status": str(status)})


async def elsewhere(desk: Desk, id: str) -> Exchange | None:
    """An exchange that another process answers, where there are several."""
    exchange = await desk.store.exchanges.get(id) if desk.store.cluster else None
    return exchange if exchange and not exchange.status.final else None


async def end_elsewhere(desk: Desk, id: str) -> Status:
    """Tell the process that answers this to end it; return how it stands then."""
    desk.bus.tell(ENDS, id)
    for _ in range(LOOKS):
        exchange = await desk.store.exchanges.get(id)
        if exchange is None or exchange.status.final:
            break
        await asyncio.sleep(LOOK_EVERY_S)
    return exchange.status if exchange else Status.CANCELLED


def owns(caller: Caller, person: str | None) -> bool:
    return caller.may(ACTIONS["request.others"]) or person == caller.person


def told(job: Job, names: dict[str, str]) -> dict[str, Any]:
    """One request without its text. Seconds."""
    person = job.request.person
    return {
        "id": job.id,
        "object": "request",
        "status": str(job.status),
        "source": job.request.source,
        "user": names.get(person) if person else None,
        "model": job.model,
        "created": int(job.queued_at.timestamp()),
        "age_s": round(job.age_s, 3),
        "position": None if job.position is None else job.position + 1,
        "expected_wait_s": None if job.expected_wait_s is None else round(job.expected_wait_s, 1),
        "prompt_tokens": job.prompt_tokens,
        "completion_tokens": job.completion_tokens,
        "tokens_per_s": round(job.tokens_per_s, 1),
    }
