"""What must hold before anything is loaded: a data folder that is this process's alone, and an address that is free.

A server that begins anew keeps the folder meanwhile. What does not hold ends the process with one sentence. Knows
nothing of what is served.
"""

import os
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from filelock import FileLock, Timeout

from engine.new_file import give_to_the_folders_owner

LOCK_FILE = "qdesk.lock"
HANDED_ON = "CLAIM_OF_QDESK"  # a variable of the environment: by which descriptor the program before had the folder
MOST_DESCRIPTORS = 1 << 16  # that are looked at where they cannot be listed; the limit may be none
NO_OTEL = (
    "QDESK_OTLP_ENDPOINT is set, but OpenTelemetry is not installed. Install it with "
    '`pip install --constraint constraints.txt --editable ".[otel]"`.'
)


class Claim:
    """The hold on a data folder, which a server that begins anew in the same process never lets go.

    It is the operating system's own lock, so that a process that is killed leaves none behind.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / LOCK_FILE
        self._lock = FileLock(self._file, timeout=0, mode=0o600)
        self._handed_on: int | None = None

    def acquire(self) -> None:
        """Raises Timeout where another has it."""
        descriptor = os.environ.pop(HANDED_ON, "")
        if descriptor.isdigit() and self._is_mine(int(descriptor)):
            self._handed_on = int(descriptor)
            os.set_inheritable(self._handed_on, False)
        else:
            self._lock.acquire()
            give_to_the_folders_owner(self._file)  # a command may be root's, and the server another's

    def release(self) -> None:
        if self._handed_on is not None:
            os.close(self._handed_on)
            self._handed_on = None
        self._lock.release()

    def hand_on(self) -> None:
        """Let the program that takes this one's place have it, and nothing else that is open here."""
        for descriptor in _descriptors():
            with suppress(OSError):  # what the listing itself had open
                mine = self._is_mine(descriptor)
                if descriptor > 2:
                    os.set_inheritable(descriptor, mine)
                if mine:
                    os.environ[HANDED_ON] = str(descriptor)
        if HANDED_ON not in os.environ:  # a disk without such locks, where filelock has others
            self.release()

    def _is_mine(self, descriptor: int) -> bool:
        with suppress(OSError):
            return os.path.samestat(os.fstat(descriptor), os.stat(self._file))
        return False


def _descriptors() -> Iterable[int]:
    """All that are open, among others where there is no list of them."""
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return range(min(os.sysconf("SC_OPEN_MAX"), MOST_DESCRIPTORS))


@contextmanager
def data_folder(path: Path, *, shared: bool = False) -> Iterator[Claim]:
    """Make the folder and keep every other server out of it: one would take the other's running requests for dead.

    `shared`: servers that have PostgreSQL and the engine elsewhere find nothing but the session secret here.
    """
    claim = Claim(path)
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not shared:
            claim.acquire()
    except Timeout:
        sys.exit(f"Another Qdesk is running on the data folder {path}; stop it, or set QDESK_DATA_DIR to another one.")
    except OSError as error:
        sys.exit(f"The data folder {path} cannot be used: {error.strerror}. Set QDESK_DATA_DIR to one that can.")
    try:
        yield claim
    finally:
        claim.release()


def begin_anew(claim: Claim) -> NoReturn:
    """Become a fresh server in the same process, so that whoever has started this one sees it run on."""
    claim.hand_on()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    try:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # as it was started, no shell  # nosec B606
    except OSError as error:
        sys.exit(f"Qdesk cannot begin anew with {sys.executable}: {error.strerror}. Start it again.")


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
