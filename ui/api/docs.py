"""/docs and /openapi.json: the API to read and to try, without a request to any other host."""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from nicegui import app, ui
from pydantic.json_schema import models_json_schema
from starlette.responses import JSONResponse, Response

from ui.api.bodies import BODIES, Body
from ui.api.reference import groups_of
from ui.components.api_reference import ApiReference
from ui.desk import Desk
from ui.theme import BUILT_WITHIN_S, frame, heading, page_visitor, say_for, styles

ABOUT = (
    "Ask the model as with OpenAI's API. Authorize with an API key from your account page: `sk-qdesk-...`.",
    'Errors always have the body `{"error": {"message", "type", "param", "code"}}`, and every answer the header '
    "`x-request-id`. A full queue is 503 `queue_full` with `Retry-After`. `WS /v1/chat/ws` takes the same request as a "
    "frame and answers with the same chunks as frames.",
)


def register(desk: Desk, version: str) -> None:
    """Register the pages; they show whatever routes there are when they are first opened."""
    described = cache(lambda: _described(version, desk.settings.base_path))

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return JSONResponse(described())

    _register_page(desk, described)


def _register_page(desk: Desk, described: Callable[[], dict[str, Any]]) -> None:
    @ui.page("/docs", response_timeout=BUILT_WITHIN_S)
    async def docs() -> None:
        visitor = page_visitor()
        say = say_for(visitor, ui.context.client.request)
        styles("api.css")
        with frame(desk, visitor, title="API", active="/docs"):
            heading("API", 1)
            ApiReference(say, [say(part) for part in ABOUT], groups_of(described(), say))


def _described(version: str, base: str) -> dict[str, Any]:
    """The OpenAPI document. `base`: ui/base_path.py."""
    surfaces = [route for route in app.routes if isinstance(route, APIRoute) and route.tags]  # pages have none
    for route in surfaces:
        route.include_in_schema = True  # NiceGUI takes POST / out, for the page at the same path
    described = get_openapi(title="Qdesk", version=version, description="\n\n".join(ABOUT), routes=surfaces)
    _drop_what_never_comes(described)
    described["components"]["schemas"] |= _bodies()
    described["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    described["security"] = [{"key": []}]
    described["servers"] = [{"url": base or "/"}]
    return described


def _drop_what_never_comes(described: dict[str, Any]) -> None:
    """FastAPI promises its own 422 wherever a path has a part; ours are texts, with which nothing can be wrong."""
    schemas = described["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        del schemas[name]
    for path in described["paths"].values():
        for operation in path.values():
            if "HTTPValidationError" in str(operation["responses"].get("422")):
                del operation["responses"]["422"]


def _bodies() -> dict[str, Any]:
    """The schemas of all bodies, and of what they are made of."""
    bodies: list[tuple[type[Body], Literal["validation"]]] = [(body, "validation") for body in BODIES]
    _, described = models_json_schema(bodies, ref_template="#/components/schemas/{model}")
    return dict(described["$defs"])
