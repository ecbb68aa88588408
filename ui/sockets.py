"""Whose socket it is. NiceGUI takes a page's client_id for a credential; here it is none.

A socket may speak for a page only if the cookie it came with opens the very session that the page was made for, and
only while that session lives and its account may still use that page (ui/access.py). Whatever does not fit is dropped
without an answer. What a page's scripts would write to the server's log is not taken: it could be anything.
"""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from loguru import logger
from nicegui import Client, core
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ui.access import Rule
from ui.auth import Auth, Visitor
from ui.heard_once import once

Handler = Callable[..., Any]


def guard_sockets(auth: Auth) -> None:
    """Put a check before each of NiceGUI's socket handlers, and before what carries them."""
    handlers: dict[str, Handler] = core.sio.handlers["/"]
    handlers["handshake"] = _when(_opens, auth, handlers["handshake"])
    handlers["connect"] = _on_connect(auth, handlers["connect"])
    handlers["event"] = once(handlers["event"])
    for event in ("event", "javascript_response", "ack"):
        handlers[event] = _when(_holds, auth, handlers[event])
    handlers["log"] = _passed_over
    core.sio.eio.handlers["message"] = _readable(core.sio.eio.handlers["message"])
    core.sio.eio.handle_request = _own_polling(auth, core.sio.eio.handle_request)


def _when(
    check: Callable[[Auth, str, Any], bool], auth: Auth, handler: Handler
) -> Callable[[str, Any], Awaitable[Any]]:
    async def checked(sid: str, message: Any = None, *_: Any) -> Any:
        if not check(auth, sid, message):
            logger.warning("a socket spoke for a page that is not its own, or no longer")
            return False
        try:
            result = handler(sid, message)
            return await result if isinstance(result, Awaitable) else result
        except Exception as error:  # what a page's handler raises never comes here; NiceGUI logs it
            logger.warning("a socket sent what no page sends: {!r}", error)
            return False

    return checked


def _on_connect(auth: Auth, handler: Handler) -> Callable[..., Awaitable[Any]]:
    async def connect(sid: str, environ: Any = None, *credentials: Any) -> Any:
        if environ is None or environ is not core.sio.get_environ(sid):
            logger.warning("a socket sent a connection of its own making")  # as an event of this name
            return False
        # An implicit handshake is part of the query; the session of a socket is the one its upgrade request had.
        client_id = parse_qs(environ.get("QUERY_STRING", "")).get("client_id", [""])[0]
        if client_id in Client.instances and not _same_session(auth, environ, Client.instances[client_id]):
            logger.warning("a socket asked for a page of another session")
            return False
        return await handler(sid, environ, *credentials)

    return connect


async def _passed_over(sid: str, *_: Any) -> None:
    logger.debug("a page had something for the log")


def _readable(handler: Handler) -> Callable[[str, Any], Awaitable[None]]:
    """Packets that cannot be read cost a line in the log, not a stack trace each."""

    async def read(eio_sid: str, packet: Any) -> None:
        try:
            await handler(eio_sid, packet)
        except Exception as error:
            logger.warning("a socket sent what cannot be read: {}", type(error).__name__)

    return read


def _own_polling(auth: Auth, handle: Handler) -> Callable[[Scope, Receive, Send], Awaitable[Any]]:
    """Without WebSocket a socket is many requests with its sid: all of them must be of the session that began it."""

    async def handle_own(scope: Scope, receive: Receive, send: Send) -> Any:
        sid = parse_qs(scope["query_string"].decode("latin-1")).get("sid", [""])[0]
        begun = core.sio.environ.get(sid)
        if begun is not None:
            first, now = auth.visitor_of(begun.get("asgi.scope", {})), auth.visitor_of(scope)
            if first is None or now is None or first.session_id != now.session_id:
                logger.warning("a request asked for a socket of another session")
                return await Response(status_code=403)(scope, receive, send)
        return await handle(scope, receive, send)

    return handle_own


def _opens(auth: Auth, sid: str, message: Any) -> bool:
    client = _client(message)
    return client is not None and _same_session(auth, core.sio.get_environ(sid) or {}, client)


def _holds(auth: Auth, sid: str, message: Any) -> bool:
    """Whether this socket has shaken hands as this page, and the page may still be used."""
    client = _client(message)
    return client is not None and _has_joined(sid, client.id) and _may_use(auth, client)


def _has_joined(sid: str, page: str) -> bool:
    return sid in core.sio.manager.rooms.get("/", {}).get(page, ())  # `sio.rooms(sid)` would look through all of them


def _may_use(auth: Auth, client: Client) -> bool:
    """Whether the page's session still lives and its account has the right that the page needs."""
    visitor, rule = _made_for(client), client.request.scope.get("state", {}).get("rule")
    return visitor is not None and isinstance(rule, Rule) and auth.allowed(visitor, rule.right)


def _client(message: Any) -> Client | None:
    client_id = message.get("client_id") if isinstance(message, dict) else None
    return Client.instances.get(client_id) if isinstance(client_id, str) else None


def _made_for(client: Client) -> Visitor | None:
    visitor = client.request.scope.get("state", {}).get("visitor")
    return visitor if isinstance(visitor, Visitor) else None


def _same_session(auth: Auth, environ: dict[str, Any], client: Client) -> bool:
    asking = auth.visitor_of(environ.get("asgi.scope", {}))
    made_for = _made_for(client)
    same = asking is not None and made_for is not None and asking.session_id == made_for.session_id
    return same and _may_use(auth, client)
