"""Connections that say nothing, little or too slowly, never read or never answer: they end, and hold nobody up.

The server has a thousand file descriptors and little patience; all else is as it is served.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx
import nicegui
import pytest

from tests.server import RunningServer, bearer, running_server

pytest.importorskip("resource", reason="files are not limited here")

SHORT_OF_FILES = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
import main, ui.connections
ui.connections.HEAD_S, ui.connections.BODY_S, ui.connections.READ_S, ui.connections.PING_S = 3, 0.5, 1, 0.5
main.main()
"""


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(program=("-c", SHORT_OF_FILES)) as running:
        yield running


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connected(server: RunningServer, stack: ExitStack, says: bytes = b"", *, reads: int = 0) -> socket.socket:
    """A connection that has said this; `reads` is how much its end takes in by itself."""
    connection = stack.enter_context(socket.socket())
    if reads:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, reads)
    connection.settimeout(60)
    connection.connect(("127.0.0.1", int(server.url.rpartition(":")[2])))
    connection.sendall(says)
    return connection


def told_until_its_end(connection: socket.socket) -> bytes:
    """All that the server says before it closes."""
    said = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            said += piece
    return said


def test_a_thousand_connections_that_say_nothing_hold_nobody_up(server: RunningServer, stack: ExitStack) -> None:
    silent = [connected(server, stack) for _ in range(1000)]
    for connection in silent:
        with suppress(OSError):  # it had to make room for others
            connection.sendall(b"POST /login HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    assert httpx.get(server.url + "/livez", timeout=5).status_code == 200
    asked = httpx.post(server.url + "/", json={"prompt": "hello"}, headers=bearer(), timeout=5)
    assert asked.json()["response"] == "You said: hello"
    assert {told_until_its_end(connection) for connection in silent} == {b""}


def test_a_second_request_has_its_time_as_well(server: RunningServer, stack: ExitStack) -> None:
    connection = connected(server, stack, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /li")
    assert told_until_its_end(connection).endswith(b'{"status":"alive"}')


def test_a_body_that_does_not_come_is_not_waited_for(server: RunningServer, stack: ExitStack) -> None:
    head = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    connection = connected(server, stack, head + b"Content-Length: 500\r\n\r\nname=")
    assert told_until_its_end(connection) == b""
    assert "sends its request too slowly" in server.output()


def test_a_pages_socket_that_answers_no_ping_is_closed(server: RunningServer, stack: ExitStack) -> None:
    with server.sign_in() as browser:
        cookie = f"Cookie: qdesk_session={browser.cookies['qdesk_session']}\r\n"
    head = f"GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: localhost\r\n{cookie}"
    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
    said = told_until_its_end(connected(server, stack, f"{head}{upgrade}{'A' * 22}==\r\n\r\n".encode()))
    assert b" 101 " in said
    assert b"keepalive ping timeout" in said


def test_an_answer_that_nobody_reads_is_not_kept(server: RunningServer, stack: ExitStack) -> None:
    large = f"/_nicegui/{nicegui.__version__}/static/quasar.umd.prod.js"
    assert len(httpx.get(server.url + large).content) > 500_000
    request = f"GET {large} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    connection = connected(server, stack, request * 50, reads=4096)
    with suppress(ConnectionResetError):
        while connection.recv(1, socket.MSG_PEEK):
            if "reads nothing of its answer" in server.output():
                return
    raise AssertionError(server.output())
