"""Connections that ask for nothing, send slowly or without end, or never read: what ends them, and how many there are.

uvicorn waits for ever for a first request and for the rest of a slow one, so that whoever opens connections and says
nothing takes every file descriptor; and its parser keeps a header in memory however long it becomes. Here each request
has its time and its room to arrive, an answer its time to be read, and where all places are taken the connection that
has been silent longest makes room. Knows nothing of what is asked.
"""

import asyncio
import sys
from typing import Any, ClassVar

from loguru import logger
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD = 64 * 1024  # bytes of address and headers together, or between two pieces of a body
HEAD_S = 15.0  # for a request line with its headers, and for the first one to begin
BODY_S, BODY_BYTES_PER_S = 30.0, 1000  # for a body, and what it has to bring for each second beyond that
READ_S = 300.0  # a program that reads nothing of its answer for so long is gone
PING_S = 20.0  # between two pings of a socket, and for the answer to one
LOOK_S = 1.0
MOST_FILES = 65_536  # file descriptors that are asked for
MOST_CONNECTIONS = 10_000
OTHER_FILES = 500  # what the database, models, other servers and the log need


def room_for_connections() -> int:
    """Raise this process's limit of open files as far as it may, and return how many connections fit below it."""
    if sys.platform == "win32":
        return MOST_CONNECTIONS  # sockets are no files there
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
        except (OSError, ValueError) as error:  # macOS has a limit below the hard one
            logger.warning("open files stay limited to {}: {}", soft, error)
    files = MOST_FILES if soft == resource.RLIM_INFINITY else soft
    return min(MOST_CONNECTIONS, files - min(files // 2, OTHER_FILES))


class Connection(HttpToolsProtocol):
    """One connection until it becomes a socket: uvicorn's own, with an eye on its peer."""

    room = MOST_CONNECTIONS
    silent: ClassVar["dict[Connection, None]"] = {}  # those that owe a request, the longest first

    _since_s = 0.0  # when the body began to arrive, on the loop's clock
    _received = 0  # bytes of its body
    _meaningless = 0  # bytes that came since the last one that meant something
    _unread: asyncio.TimerHandle | None = None
    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn's own
        super().connection_made(transport)
        if len(self.connections) > self.room and not self._make_room():
            self.connections.discard(self)
            transport.abort()
            return
        self._owes_a_request()

    def data_received(self, data: bytes) -> None:
        self._meaningless += len(data)
        super().data_received(data)
        if self._meaningless > LONGEST_HEAD and not self.transport.is_closing():
            logger.warning("a connection is cut off: it sent {} bytes that mean nothing", self._meaningless)
            self.send_400_response("The head of the request is too large.")
            return
        between = self.cycle is None or self.cycle.response_complete
        if between and self not in self.silent and self in self.connections:  # uvicorn has let go of its own timer
            self._owes_a_request()

    def on_headers_complete(self) -> None:
        self._settled()
        self._meaningless = 0
        self._since_s, self._received = self.loop.time(), 0
        self._look = self.loop.call_later(BODY_S, self._look_at_body)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._meaningless = 0
        self._received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._settled()
        self._meaningless = 0
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(READ_S, self._give_up, "reads nothing of its answer")

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread:
            self._unread.cancel()
            self._unread = None

    def handle_websocket_upgrade(self) -> None:
        self._settled()  # what sockets owe are answers to pings
        super().handle_websocket_upgrade()
        self.parser = None  # type: ignore[assignment]  # which holds this connection; uvicorn lets go of it likewise

    def connection_lost(self, exc: Exception | None) -> None:
        self._settled()
        super().connection_lost(exc)
        if self._unread:
            self._unread.cancel()

    # --- what is owed ---

    def _owes_a_request(self) -> None:
        self.silent[self] = None
        self._look = self.loop.call_later(HEAD_S, self._give_up, "")

    def _settled(self) -> None:
        self.silent.pop(self, None)
        if self._look:
            self._look.cancel()
            self._look = None

    def _look_at_body(self) -> None:
        if self.flow.read_paused:  # it is the server that is slow
            self._since_s += LOOK_S
        elif self.loop.time() - self._since_s > BODY_S + self._received / BODY_BYTES_PER_S:
            self._give_up("sends its request too slowly")
            return
        self._look = self.loop.call_later(LOOK_S, self._look_at_body)

    def _give_up(self, why: str) -> None:
        if why:
            logger.info("a connection from {} is closed: it {}", self.client[0] if self.client else "-", why)
        self.transport.abort()

    def _make_room(self) -> bool:
        """Close the connection that has been silent longest. False: none is."""
        longest = next(iter(self.silent), None)
        if longest is None:
            return False
        longest._settled()
        self.connections.discard(longest)
        longest.transport.abort()
        return True


def serving(longest_message: int) -> dict[str, Any]:
    """What uvicorn is told of connections, by the room that this process has; `longest_message` in bytes."""
    Connection.room = room_for_connections()
    pings = {"ws_ping_interval": PING_S, "ws_ping_timeout": PING_S}
    return {"http": Connection, "ws_max_size": longest_message, **pings}
