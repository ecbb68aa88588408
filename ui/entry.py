"""What every HTTP request passes first: it gets an id, one line in the log, and no stack trace.

Below another site's name it takes the path there away (ui/base_path.py), whether the proxy has done so already or not,
and puts it before where answers lead to. The answer gets the security headers (ui/headers.py), and may be kept if it is
one of NiceGUI's files (ui/middleware.py). The log line holds the id, the account's id, the path without its query, the
status and the time; never a prompt, a key or a password.
"""

import re
import time
from urllib.parse import quote

from loguru import logger
from nicegui import app
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.errors import EngineError
from engine.types import new_id
from ui.api.faults import failure, refused
from ui.banner import Board
from ui.headers import NOTHING, page_policy, security_headers
from ui.middleware import lasts
from ui.nonces import new_nonce

QUIET = ("/static/", "/_nicegui", "/livez", "/readyz", "/health", "/metrics", "/favicon.ico")
GIVEN_ID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
PREFIX_HEADER = b"x-forwarded-prefix"  # NiceGUI puts it before its addresses; only what the operator has set counts


class Entry:
    def __init__(self, app: ASGIApp, secure: bool, base: str, board: Board) -> None:
        """`secure`: people come by https. `base`: the path that they find us below, or "". `board`: of the banner."""
        self.app, self.headers, self.base, self.board = app, security_headers(secure), base, board

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        self._begin(scope)
        state = scope.setdefault("state", {})
        state["base"], state["banner"] = self.base, self.board.now
        state["request_id"], state["person"], state["nonce"] = new_id(), None, new_nonce()
        given = Headers(scope=scope).get("x-request-id", "")
        state["given_id"] = given if GIVEN_ID.fullmatch(given) else ""  # for the program's own log; never an id of ours
        if scope["type"] == "websocket":
            return await self.app(scope, receive, send)
        return await self._http(scope, receive, send)

    def _begin(self, scope: Scope) -> None:
        """Let the path that is asked for begin behind ours, and NiceGUI know of it."""
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] != PREFIX_HEADER]
        if not self.base:
            return
        scope["headers"].append((PREFIX_HEADER, self.base.encode()))
        path: str = scope["path"]
        if path == self.base or path.startswith(f"{self.base}/"):
            scope["path"] = path[len(self.base) :] or "/"
            scope["raw_path"] = scope["raw_path"][len(self.base) :] or b"/"

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = time.perf_counter(), 0
        # HEAD is answered as GET everywhere; what serves the connection knows that it was HEAD and sends no body.
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = scope["state"]["given_id"] or scope["state"]["request_id"]
                if location := headers.get("location"):
                    headers["location"] = _led(scope, location, self.base)
                if lasts(scope["path"]):
                    headers["Cache-Control"] = app.config.cache_control_directives
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.setdefault("Content-Security-Policy", page_policy(scope["state"]["nonce"]))
                else:
                    headers.setdefault("Cache-Control", "no-store")
                    headers["Content-Security-Policy"] = NOTHING
            await send(message)

        try:
            await self.app(asked, receive, send_with_headers)
        except EngineError as error:  # it was not even found out who asks
            logger.warning("request {} is refused: {}", scope["state"]["request_id"], error)
            if status:
                raise
            await refused(scope, error)(scope, receive, send_with_headers)
        except Exception:
            logger.exception("request {} failed", scope["state"]["request_id"])
            if status:
                raise
            await failure(scope)(scope, receive, send_with_headers)
        finally:
            _log(scope, status, time.perf_counter() - began)


def _led(scope: Scope, location: str, base: str) -> str:
    """Where an answer leads to: a path of ours begins with `base`."""
    path = location.removeprefix(f"{scope['scheme']}://{Headers(scope=scope).get('host', '')}")
    return base + path if path.startswith("/") and not path.startswith("//") else location


def _log(scope: Scope, status: int, seconds: float) -> None:
    path: str = scope["path"]
    state = scope["state"]
    facts = {
        "request": state["request_id"],
        "person": state["person"] or "-",
        "method": scope["method"],
        "path": quote(path, safe="/:@-._~"),
        "status": status or "gone",
        "ms": round(seconds * 1000),
    }
    line = "{request} {person} {method} {path} {status} {ms} ms"
    if state["given_id"]:
        facts["given_id"] = state["given_id"]
        line += " as {given_id}"
    logger.bind(**facts).log("DEBUG" if path.startswith(QUIET) else "INFO", line, **facts)
