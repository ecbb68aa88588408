"""The door: who may pass is what ui/access.py says, and nothing else is reachable.

Pure ASGI, so that sockets pass it too, and by the route that will answer, which a forged Host header cannot change. It
finds out who asks and leaves that in scope["state"]: `visitor` (by the session cookie), on API paths `caller`, and the
`rule`, by which a page's socket is judged later (ui/sockets.py). Whose things they are is for pages and routes to ask.
"""

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.settings import Settings
from ui.access import OPEN, PEOPLE, PROGRAMS, Right, Rule, rule_of
from ui.api.errors import ApiError, error_response
from ui.auth import Auth, Caller
from ui.base_path import base_of
from ui.cookies import Cookies
from ui.ended import sign_in_address
from ui.forms import document, link
from ui.i18n import language, preferred
from ui.origins import Origins

METRICS = "/metrics"
API = frozenset({"/v1", METRICS, "/openapi.json"})
PROBES = frozenset({"/livez", "/readyz", "/health"})  # balancers ask by whatever name they know
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def is_api(scope: Scope) -> bool:
    """Whether a program asks: it is answered in JSON."""
    path: str = scope["path"]
    posts_to_root = path == "/" and scope.get("method") not in SAFE
    return posts_to_root or path in API or path in PROBES or path.startswith("/v1/")


def own_path(target: str) -> str:
    """`target` if it is a path on this server, else "/": it may come from a link that somebody else made."""
    control = any(ord(character) < 0x20 or character in "\\\x7f" for character in target)
    return target if target.startswith("/") and not target.startswith("//") and not control else "/"


class Guard:
    def __init__(self, app: ASGIApp, auth: Auth, settings: Settings) -> None:
        self.app, self.auth, self.origins = app, auth, Origins(settings)
        self.cookies = Cookies(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif refusal := await self._refusal(scope):
            await refusal(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _refusal(self, scope: Scope) -> Response | None:
        """Find out who asks; the answer to give instead where they may not pass."""
        asked, state = HTTPConnection(scope), scope.setdefault("state", {})
        host = asked.headers.get("host", "")
        if not (self.origins.may_address(host) or scope["path"] in PROBES or self._scrapes(asked, host)):
            return _misdirected(scope, host)
        rule = state["rule"] = rule_of(scope, PROGRAMS if is_api(scope) else PEOPLE)
        if rule is None:  # a route that nobody thought of
            return _not_for_you(scope)
        if rule != OPEN and (cookie := asked.cookies.get(self.cookies.session)):
            state["visitor"] = await self.auth.visitor(cookie)
            state["person"] = state["visitor"].user.id if state["visitor"] else None
        if not self._from_our_pages(asked, rule):
            return error_response(ApiError(403, "This call comes from another site's page.", code="foreign_origin"))
        match rule.way:
            case "key":
                return await self._refuse_caller(asked, rule.right)
            case "session":
                return self._refuse_visitor(scope, rule.right)
            case "open":
                return None

    def _scrapes(self, asked: HTTPConnection, host: str) -> bool:
        """Whether this is Prometheus, which finds each of several processes by its number; no page has its key."""
        return asked.scope["path"] == METRICS and _bearer(asked) is not None and self.origins.is_number(host)

    async def _refuse_caller(self, asked: HTTPConnection, right: Right) -> Response | None:
        caller = await find_caller(self.auth, asked)
        if caller is None:
            return error_response(_unknown_caller(_bearer(asked)))
        asked.scope["state"]["caller"], asked.scope["state"]["person"] = caller, caller.person
        return None if caller.may(right) else _not_for_you(asked.scope)

    def _refuse_visitor(self, scope: Scope, right: Right) -> Response | None:
        visitor = self.auth.visitor_of(scope)
        if visitor is None:
            return _to_login(scope, was_signed_in=self.cookies.session in HTTPConnection(scope).cookies)
        return None if self.auth.allowed(visitor, right) else _not_for_you(scope)

    def _from_our_pages(self, asked: HTTPConnection, rule: Rule) -> bool:
        """Whether a call that changes something, or a socket, was not started by another site's page.

        A program's call is its key's, whatever page it may run on; where a session would do, the page counts.
        """
        harmless = asked.scope["type"] == "http" and asked.scope["method"] in SAFE
        by_key = rule.way == "key" and _bearer(asked) is not None
        by_key_alone = by_key and asked.scope["state"].get("visitor") is None
        if harmless or by_key_alone:
            return True
        return self.origins.may_call(asked.headers.get("origin"), asked.headers.get("host", ""))


async def find_caller(auth: Auth, asked: HTTPConnection) -> Caller | None:
    """Who calls: by the key, or by the session where nothing can be changed by it or the Origin has been checked."""
    if (key := _bearer(asked)) is not None:
        return await auth.keys.caller(key)
    harmless = asked.scope["type"] == "websocket" or asked.scope["method"] in SAFE
    visitor = auth.visitor_of(asked) if harmless else None
    return Caller(visitor.user, session_id=visitor.session_id) if visitor else None


def _bearer(asked: HTTPConnection) -> str | None:
    scheme, _, key = asked.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def _unknown_caller(key: str | None) -> ApiError:
    sentence = "There is no such API key." if key else "Send an API key: `Authorization: Bearer sk-qdesk-...`."
    return ApiError(401, sentence, type="authentication_error", code="invalid_api_key")


def _misdirected(scope: Scope, host: str) -> Response:
    message = (
        f"This server is not called {host[:100]!r}. Whoever runs it sets QDESK_PUBLIC_URL to the address that people "
        "use, and QDESK_ALLOWED_HOSTS for further names."
    )
    return error_response(ApiError(421, message, code="unknown_host"))


def _not_for_you(scope: Scope) -> Response:
    if is_api(scope):
        return error_response(ApiError(403, "Your account may not do this.", type="permission_error", code="forbidden"))
    say = language(preferred(Headers(scope=scope).get("accept-language", "")))
    home = link(f"{base_of(scope)}/", say("Back to the start"))
    return document(scope, say, say("This page is not for your account"), home, status=403)


def _to_login(scope: Scope, *, was_signed_in: bool) -> Response:
    if scope["type"] == "websocket" or scope["path"].startswith("/_nicegui_ws"):
        return Response(status_code=403)
    wanted = scope["path"] if scope["method"] in SAFE else "/"
    if wanted != "/" and scope["query_string"]:
        wanted += "?" + scope["query_string"].decode("latin-1")
    return RedirectResponse(sign_in_address(own_path(wanted), "signed-out" if was_signed_in else ""), 303)
