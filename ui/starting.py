"""What must hold before anything is loaded: a data folder that is this process's alone, and an address that is free.

What does not hold ends the process with one sentence. Knows nothing of what is served.
"""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

LOCK_FILE = "qdesk.lock"
NO_OTEL = (
    "QDESK_OTLP_ENDPOINT is set, but OpenTelemetry is not installed. Install it with "
    '`pip install --constraint constraints.txt --editable ".[otel]"`.'
)


@contextmanager
def data_folder(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Make the folder and keep every other server out of it: one would take the other's running requests for dead.

    `shared`: servers that have PostgreSQL and the engine elsewhere find nothing but the session secret here.

    The lock is the operating system's own, so that a process that is killed leaves none behind.
    """
    lock = FileLock(path / LOCK_FILE, timeout=0, mode=0o600)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not shared:
            lock.acquire()
    except Timeout:
        sys.exit(f"Another Qdesk is running on the data folder {path}; stop it, or set QDESK_DATA_DIR to another one.")
    except OSError as error:
        sys.exit(f"The data folder {path} cannot be used: {error.strerror}. Set QDESK_DATA_DIR to one that can.")
    try:
        yield
    finally:
        lock.release()


def check_address(host: str, port: int) -> None:
    """Bind the address for a moment, before minutes are spent on loading a model in vain."""
    try:
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            with socket.socket(family, kind, protocol) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server will
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listener.bind(address)
    except OSError as error:
        sys.exit(f"Qdesk cannot listen on {host} port {port}: {error.strerror}. Set QDESK_HOST or QDESK_PORT.")
