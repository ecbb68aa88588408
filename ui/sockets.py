"""Whose socket it is. NiceGUI takes a page's client_id for a credential; here it is none.

A socket may speak for a page only if the cookie it came with opens the very session that the page was made for, and
only while that session lives. Whatever does not fit is dropped without an answer.
"""

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs

from loguru import logger
from nicegui import Client, core

from ui.auth import Auth, Visitor

Handler = Callable[..., Any]


def guard_sockets(auth: Auth) -> None:
    """Put a check before each of NiceGUI's socket handlers."""
    handlers: dict[str, Handler] = core.sio.handlers["/"]
    handlers["handshake"] = _when(_opens, auth, handlers["handshake"])
    handlers["connect"] = _on_connect(auth, handlers["connect"])
    for event in ("event", "javascript_response", "ack", "log"):
        handlers[event] = _when(_holds, auth, handlers[event])


def _when(
    check: Callable[[Auth, str, Any], bool], auth: Auth, handler: Handler
) -> Callable[[str, Any], Awaitable[Any]]:
    async def checked(sid: str, message: Any = None) -> Any:
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
    async def connect(sid: str, environ: dict[str, Any], credentials: Any = None) -> Any:
        # An implicit handshake is part of the query; the session of a socket is the one its upgrade request had.
        client_id = parse_qs(environ.get("QUERY_STRING", "")).get("client_id", [""])[0]
        if client_id in Client.instances and not _same_session(auth, environ, Client.instances[client_id]):
            logger.warning("a socket asked for a page of another session")
            return False
        return await handler(sid, environ, credentials)

    return connect


def _opens(auth: Auth, sid: str, message: Any) -> bool:
    client = _client(message)
    return client is not None and _same_session(auth, core.sio.get_environ(sid) or {}, client)


def _holds(auth: Auth, sid: str, message: Any) -> bool:
    """Whether this socket has shaken hands as this page, and the page's session still lives."""
    client = _client(message)
    if client is None or client.id not in core.sio.rooms(sid):
        return False
    visitor = _made_for(client)
    return visitor is not None and auth.allowed(visitor)


def _client(message: Any) -> Client | None:
    client_id = message.get("client_id") if isinstance(message, dict) else None
    return Client.instances.get(client_id) if isinstance(client_id, str) else None


def _made_for(client: Client) -> Visitor | None:
    visitor = client.request.scope.get("state", {}).get("visitor")
    return visitor if isinstance(visitor, Visitor) else None


def _same_session(auth: Auth, environ: dict[str, Any], client: Client) -> bool:
    asking = auth.visitor_of(environ.get("asgi.scope", {}))
    made_for = _made_for(client)
    return asking is not None and made_for is not None and asking.session_id == made_for.session_id
