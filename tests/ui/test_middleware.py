"""No layer with a task and queues of its own lies around a request, and what NiceGUI's layers did is done."""

import re

import httpx
from nicegui import App
from nicegui.middlewares import RedirectWithPrefixMiddleware, SetCacheControlMiddleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.gzip import GZipMiddleware

from tests.server import RunningServer
from ui.middleware import leave_out_what_entry_does


def test_niceguis_own_layers_are_left_out_and_others_stay() -> None:
    app = App()
    leave_out_what_entry_does(app)
    for layer in (GZipMiddleware, RedirectWithPrefixMiddleware, SetCacheControlMiddleware):
        app.add_middleware(layer)
    layers: list[object] = [app.build_middleware_stack()]
    while inner := getattr(layers[-1], "app", None):
        layers.append(inner)
    assert any(isinstance(layer, GZipMiddleware) for layer in layers)
    assert not [layer for layer in layers if isinstance(layer, BaseHTTPMiddleware)]


def test_browsers_may_keep_niceguis_files_and_nothing_else(server: RunningServer) -> None:
    with server.sign_in("ada") as keeper:
        page = keeper.get("/")
        assert page.headers["cache-control"] == "no-store"
        files = re.findall(r'"(/_nicegui/[\d.]+/[\w./-]+\.(?:js|css))"', page.text)
        assert files
        for path in set(files):
            kept = keeper.get(path)
            assert (kept.status_code, "immutable" in kept.headers["cache-control"]) == (200, True), path
    assert httpx.get(server.url + "/livez").headers["cache-control"] == "no-store"
