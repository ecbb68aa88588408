"""/docs and /openapi.json: the API to read and to try, without a request to any other host."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from nicegui import app
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from ui.api.bodies import BODIES, Body
from ui.forms import hanging
from ui.i18n import language, preferred
from ui.nonces import nonce_of

ABOUT = """
Ask the model as with OpenAI's API. Authorize with an API key from your account page: `sk-qdesk-...`.

Errors always have the body `{"error": {"message", "type", "param", "code"}}`, and every answer the header
`x-request-id`. A full queue is 503 `queue_full` with `Retry-After`. `WS /v1/chat/ws` takes the same request as a frame
and answers with the same chunks as frames.
"""

NOTICES = (
    "<style>.notice { margin: 0; padding: 12px 20px; font: 600 16px/1.5 sans-serif; color: #1c2422; "
    "background: #e9efed } "
    ".notice.warn { color: #93580a; background: #fdf3e1 } .notice.bad { color: #b42318; background: #fdeceb }</style>"
)


def register(version: str, base: str) -> None:
    """Register the pages; they show whatever routes there are when they are first opened. `base`: ui/base_path.py."""
    app.add_static_files("/docs/files", _swagger_files())

    @cache
    def schema() -> dict[str, Any]:
        surfaces = [route for route in app.routes if isinstance(route, APIRoute) and route.tags]  # pages have none
        for route in surfaces:
            route.include_in_schema = True  # NiceGUI takes POST / out, for the page at the same path
        described = get_openapi(title="Qdesk", version=version, description=ABOUT, routes=surfaces)
        _drop_what_never_comes(described)
        described["components"]["schemas"] |= _bodies()
        described["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        described["security"] = [{"key": []}]
        described["servers"] = [{"url": base or "/"}]
        return described

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi() -> Response:
        return JSONResponse(schema())

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        page = get_swagger_ui_html(
            openapi_url=f"{base}/openapi.json",
            title="Qdesk API",
            swagger_js_url=f"{base}/docs/files/swagger-ui-bundle.js",
            swagger_css_url=f"{base}/docs/files/swagger-ui.css",
            swagger_favicon_url=f"{base}/static/qdesk.svg",
        )
        up = hanging(request, language(preferred(request.headers.get("accept-language", ""))))
        own = bytes(page.body).decode().replace("<script>", f'<script nonce="{nonce_of(request)}">')
        return HTMLResponse(own.replace("<body>", f"<body>{NOTICES}{up}", 1))


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


def _swagger_files() -> Path:
    found = find_spec("fastapi_offline")
    assert found is not None, "the package fastapi-offline is a dependency"
    assert found.origin is not None
    return Path(found.origin).parent / "static"
