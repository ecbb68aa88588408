"""GET /v1/requests and POST /v1/requests/{id}/cancel: what runs and waits. One's own; all of it for administrators.

Over all processes, where there are several. Never shows a prompt. Somebody else's request is as unknown as one that
does not exist.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from loguru import logger
from nicegui import app
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from engine.errors import EndedByAdministrator
from engine.job import Job
from engine.types import Exchange, Status
from ui.access import ACTIONS
from ui.api.described import AllRunning, Cancelled, replies
from ui.api.errors import ApiError
from ui.auth import Caller
from ui.desk import Desk
from ui.elsewhere import cancel as cancel_elsewhere
from ui.elsewhere import elsewhere, ended, overrule

if TYPE_CHECKING:
    from storage.records import ExchangeRow


def register(desk: Desk) -> None:
    @app.get("/v1/requests", tags=["requests"], responses=replies(AllRunning))
    async def requests(request: Request) -> Response:
        """Running and waiting requests, in order of arrival."""
        caller = request.state.caller
        everybodys = caller.may(ACTIONS["request.others"])
        names = {user.id: user.name for user in await desk.store.users.list()} if everybodys else {}
        others = await elsewhere(desk, None if everybodys else caller.person or "")
        seen = [told(job, names) for job in desk.service.jobs.values() if owns(caller, job.request.person)]
        seen += [told_of_row(row, named=everybodys) for row in others]
        return JSONResponse({"object": "list", "data": sorted(seen, key=lambda one: -float(one["age_s"]))})

    @app.post("/v1/requests/{id}/cancel", tags=["requests"], responses=replies(Cancelled, 404))
    async def cancel(request: Request, id: str) -> Response:
        """End a request that runs or waits; it keeps its text so far. The completion's id is taken too."""
        caller, id = request.state.caller, id.removeprefix("chatcmpl-")
        job = desk.service.jobs.get(id)
        asked = job.request if job else await unfinished_elsewhere(desk, id)
        if asked is None or not owns(caller, asked.person):
            raise ApiError(404, "There is no such request running or waiting.", param="id", code="request_not_found")
        own = asked.person == caller.person
        if job:
            desk.service.end(job, Status.CANCELLED, None if own else EndedByAdministrator())
            await job.closed()
            status = job.status
        else:
            row = await ended(desk, id, cancel_elsewhere if own else overrule)
            status = row.status if row else Status.CANCELLED
        if not own:
            logger.info("request {} cancelled by {}", id, caller.name or "the operator")
            await desk.store.audit.add(caller.name, "request.cancel", id, "by API")
        return JSONResponse({"id": id, "object": "request", "status": str(status)})


async def unfinished_elsewhere(desk: Desk, id: str) -> Exchange | None:
    """An exchange that another process answers, where there are several."""
    exchange = await desk.store.exchanges.get(id) if desk.store.cluster else None
    return exchange if exchange and not exchange.status.final else None


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


def told_of_row(row: "ExchangeRow", *, named: bool) -> dict[str, Any]:
    """The same of a request in another process, as its row says; places in the line are that process's to tell."""
    age_s = (datetime.now(UTC) - row.queued_at).total_seconds()
    answering_s = age_s - row.ttft_s if row.ttft_s is not None else 0.0
    return {
        "id": row.id,
        "object": "request",
        "status": str(row.status),
        "source": row.source,
        "user": (row.user_name or None) if named else None,
        "model": row.model,
        "created": int(row.queued_at.timestamp()),
        "age_s": round(age_s, 3),
        "position": None,
        "expected_wait_s": None,
        "prompt_tokens": row.prompt_tokens,
        "completion_tokens": row.completion_tokens,
        "tokens_per_s": round(row.completion_tokens / answering_s, 1) if answering_s > 0 else 0.0,
    }
