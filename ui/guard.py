"""The door: nothing is reachable without signing in, except what is listed here.

Pure ASGI, so that sockets pass it too, and by scope["path"], which a forged Host header cannot change. It finds out who
asks and leaves that in scope["state"]: `visitor` (by the session cookie) and, on API paths, `caller`. What a person may
do is for the pages and routes to ask; whose socket it is, is for ui/sockets.py.
"""

from urllib.parse import quote, urlsplit

import nicegui
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.settings import Settings
from ui.api.errors import ApiError, error_response
from ui.auth import Auth, Caller

COOKIE = "qdesk_session"
PUBLIC = frozenset({"/login", "/setup", "/invite", "/livez", "/readyz", "/health"})
PUBLIC_FOLDERS = ("/static/", f"/_nicegui/{nicegui.__version__}/")
API = frozenset({"/v1", "/metrics", "/openapi.json"})
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def is_api(scope: Scope) -> bool:
    """Whether a program asks: it is answered in JSON, and may use a key."""
    path: str = scope["path"]
    posts_to_root = path == "/" and scope.get("method") not in SAFE
    return posts_to_root or path in API or path.startswith("/v1/")


def own_path(target: str) -> str:
    """`target` if it is a path on this server, else "/": it may come from a link that somebody else made."""
    control = any(ord(character) < 0x20 or character in "\\\x7f" for character in target)
    return target if target.startswith("/") and not target.startswith("//") and not control else "/"


class Guard:
    def __init__(self, app: ASGIApp, auth: Auth, settings: Settings) -> None:
        self.app, self.auth = app, auth
        self._public_origin = _origin(settings.public_url)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or _is_public(scope["path"]):
            await self.app(scope, receive, send)
        elif refusal := await self._refusal(HTTPConnection(scope)):
            await refusal(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _refusal(self, asked: HTTPConnection) -> Response | None:
        """Find out who asks; the answer to give instead where they may not pass."""
        scope, state = asked.scope, asked.scope.setdefault("state", {})
        if cookie := asked.cookies.get(COOKIE):
            state["visitor"] = await self.auth.visitor(cookie)
        visitor = state.get("visitor")
        if visitor:
            state["person"] = visitor.user.id
        if visitor and not self._from_our_pages(asked):
            return error_response(ApiError(403, "This call comes from another site's page.", code="foreign_origin"))
        if is_api(scope) or scope["path"].startswith("/docs"):
            if caller := await find_caller(self.auth, asked):
                state["caller"], state["person"] = caller, caller.person
                return None
            if is_api(scope):
                return error_response(_unknown_caller(_bearer(asked)))
        if visitor:
            return None
        return _to_login(scope)

    def _from_our_pages(self, asked: HTTPConnection) -> bool:
        """Whether a call that changes something, or a socket, was not started by another site's page."""
        origin = asked.headers.get("origin")
        if origin is None or (asked.scope["type"] == "http" and asked.scope["method"] in SAFE):
            return True
        return urlsplit(origin).netloc == asked.headers.get("host") or origin == self._public_origin


async def find_caller(auth: Auth, asked: HTTPConnection) -> Caller | None:
    """Who calls: by the key, or by the session where nothing can be changed by it or the Origin has been checked."""
    if (key := _bearer(asked)) is not None:
        return await auth.keys.caller(key)
    harmless = asked.scope["type"] == "websocket" or asked.scope["method"] in SAFE
    visitor = auth.visitor_of(asked) if harmless else None
    return Caller(visitor.user, session_id=visitor.session_id) if visitor else None


def _is_public(path: str) -> bool:
    return path in PUBLIC or path.startswith(PUBLIC_FOLDERS)


def _bearer(asked: HTTPConnection) -> str | None:
    scheme, _, key = asked.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def _unknown_caller(key: str | None) -> ApiError:
    sentence = "There is no such API key." if key else "Send an API key: `Authorization: Bearer sk-qdesk-...`."
    return ApiError(401, sentence, type="authentication_error", code="invalid_api_key")


def _to_login(scope: Scope) -> Response:
    if scope["type"] == "websocket" or scope["path"].startswith("/_nicegui_ws"):
        return Response(status_code=403)
    wanted = scope["path"] if scope["method"] in SAFE else "/"
    if wanted != "/" and scope["query_string"]:
        wanted += "?" + scope["query_string"].decode("latin-1")
    return RedirectResponse(f"/login?next={quote(own_path(wanted))}" if wanted != "/" else "/login", 303)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if url else ""
