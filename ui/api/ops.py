"""For whoever runs the server: is it alive, can it answer, and what programs may know without a key.

A full queue stays 200 with `busy`: a server that works hard must not be restarted for it.
"""

from typing import Any

from nicegui import app
from starlette.responses import JSONResponse, Response

from engine.service import ChatService
from ui.api.described import WITHOUT_KEY, Alive, Condition, probe
from ui.desk import Desk


def register(desk: Desk) -> None:
    @app.get("/livez", tags=["operations"], responses=probe(Alive), openapi_extra=WITHOUT_KEY)
    async def livez() -> Response:
        """200 while the process answers."""
        return JSONResponse({"status": "alive"})

    told = probe(Condition, 503)

    @app.get("/readyz", tags=["operations"], responses=told, openapi_extra=WITHOUT_KEY)
    @app.get("/health", tags=["operations"], responses=told, openapi_extra=WITHOUT_KEY)
    async def readyz() -> Response:
        """200 when requests can be answered, also while the queue is full; else 503 with the reason."""
        ready = desk.service.state()[0] == "ready"
        return JSONResponse(condition(desk.service), 200 if ready else 503)


def condition(service: ChatService) -> dict[str, Any]:
    state, reason = service.state()
    gate = service.gate
    busy = len(gate.running) >= gate.limits.concurrent and gate.waiting >= gate.limits.waiting
    about = {"status": state, "busy": busy, "running": len(gate.running), "waiting": gate.waiting}
    return {**about, "model": service.backend.model, **({"reason": reason} if reason else {})}
