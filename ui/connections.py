"""One connection from outside: how much it may send before it says what it wants, and how long it may take for that.

The parser below has no limit of its own: a single header would be kept in memory however long it became, by whoever can
reach the port. Knows nothing of what is asked.
"""

import asyncio
from typing import Any

from loguru import logger
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD = 64 * 1024  # bytes of address and headers together, or between two pieces of a body
HEAD_WITHIN_S = 30.0


class Connection(HttpToolsProtocol):
    """uvicorn's HTTP connection, cut off where nothing that can be answered comes of it."""

    _unread = 0  # bytes that came since the last one that meant something
    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        self._unread += len(data)
        super().data_received(data)
        if self._unread > LONGEST_HEAD and not self.transport.is_closing():
            logger.warning("a connection is cut off: it sent {} bytes that mean nothing", self._unread)
            self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()

    def on_headers_complete(self) -> None:
        self._meant_something()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._meant_something()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._meant_something()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(HEAD_WITHIN_S, self._give_up)

    def _meant_something(self) -> None:
        self._unread = 0
        if self._patience:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        self.transport.close()


def serving(longest_message: int) -> dict[str, Any]:
    """What uvicorn is told of connections; messages of sockets are bounded too, in bytes."""
    return {"http": Connection, "ws_max_size": longest_message}
