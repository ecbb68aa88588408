"""GET /v1/requests and POST /v1/requests/{id}/cancel: what runs and waits. One's own; all of it for administrators.

Never shows a prompt. Somebody else's request is as unknown as one that does not exist.
"""

from typing import Any

from loguru import logger
from nicegui import app
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from engine.job import Job
from engine.types import Status
from ui.access import ACTIONS
from ui.api.described import AllRunning, Cancelled, replies
from ui.api.errors import ApiError
from ui.auth import Caller
from ui.desk import Desk


def register(desk: Desk) -> None:
    @app.get("/v1/requests", tags=["requests"], responses=replies(AllRunning))
    async def requests(request: Request) -> Response:
        """Running and waiting requests, in order of arrival."""
        caller = request.state.caller
        names = (
            {user.id: user.name for user in await desk.store.users.list()}
            if caller.may(ACTIONS["request.others"])
            else {}
        )
        seen = [told(job, names) for job in desk.service.jobs.values() if owns(caller, job)]
        return JSONResponse({"object": "list", "data": seen})

    @app.post("/v1/requests/{id}/cancel", tags=["requests"], responses=replies(Cancelled, 404))
    async def cancel(request: Request, id: str) -> Response:
        """End a request that runs or waits; it keeps its text so far. The completion's id is taken too."""
        caller, job = request.state.caller, desk.service.jobs.get(id.removeprefix("chatcmpl-"))
        if job is None or not owns(caller, job):
            raise ApiError(404, "There is no such request running or waiting.", param="id", code="request_not_found")
        desk.service.end(job, Status.CANCELLED)
        await job.closed()
        if job.request.person != caller.person:
            logger.info("request {} cancelled by {}", job.id, caller.name or "the operator")
            await desk.store.audit.add(caller.name, "request.cancel", job.id, "by API")
        return JSONResponse({"id": job.id, "object": "request", "status": str(job.status)})


def owns(caller: Caller, job: Job) -> bool:
    return caller.may(ACTIONS["request.others"]) or job.request.person == caller.person


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
