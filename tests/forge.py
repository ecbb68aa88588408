"""Where the tests' servers come from: a process that has imported everything once, and is forked for each server.

    server = Forge().start(("main.py",), environment, output)  # for subprocess.Popen([sys.executable, "main.py"], ...)

Imports are nine tenths of what a start costs. Whatever is forked has a session, environment, output and exit code of
its own, can be signalled and killed, and ends with the tests. The forge runs no thread and no event loop and knows no
PyTorch, so that there is nothing that a fork could break. Linux only; elsewhere servers are started in the plain way.
"""

import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

ROOT = Path(__file__).parent.parent
LARGEST = 1 << 20  # bytes of an order
LATE = ("storage.migrate", "ui.console.commands")  # what a server imports only when it must


class Process(Protocol):
    """As much of `subprocess.Popen` as the tests use."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, sig: int) -> None: ...

    def kill(self) -> None: ...


class Forge:
    """The forge, seen from the tests. It goes when they go."""

    def __init__(self) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "tests.forge", str(theirs.fileno())]
            self._process = subprocess.Popen(
                command, cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )

    def start(self, program: tuple[str, ...], environment: Mapping[str, str], output: IO[bytes]) -> Process:
        """Run Python's arguments `program`, a file, `-m` and a module, or `-c` and a text, in a new process."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            order = json.dumps([program, dict(environment)]).encode()
            socket.send_fds(self._orders, [order], [output.fileno(), theirs.fileno()])
        return Forged(ours)

    def close(self) -> None:
        self._orders.close()
        with suppress(subprocess.TimeoutExpired):  # something still runs that no test has ended; it ends with them
            self._process.wait(10)


class Forged:
    """A server that was forked; its keeper tells its own number, then the server's, and at the end the exit code."""

    def __init__(self, keeper: socket.socket) -> None:
        self._keeper = keeper
        self._session = self._told()
        self.pid = self._told()
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._keeper], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("the forged server", timeout or 0)
            self.returncode = self._told()
            self._keeper.close()
        return self.returncode

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended just now
                os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def left(self) -> list[int]:
        """The processes of its session that there are yet, but for the keeper, which is about to go."""
        return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if self._began(pid)]

    def _began(self, pid: int) -> bool:
        with suppress(ProcessLookupError):
            return pid != self._session and os.getsid(pid) == self._session
        return False

    def _told(self) -> int:
        said = self._keeper.recv(32)
        assert said, "the forge is gone"
        return int(said)


def main(orders: socket.socket) -> None:
    """Take orders until the tests are gone. Each comes back from here in a process of its own, and is run."""
    runpy.run_path("main.py", run_name="imported")
    for name in LATE:
        importlib.import_module(name)
    assert threading.active_count() == 1
    assert not {"torch", "opentelemetry.sdk"} & set(sys.modules)
    while received := take(orders):
        program, environment, output, tests = received
        if os.fork() == 0:
            orders.close()
            keep(tests, output)
            run(program, environment)
            return
        os.close(output)
        tests.close()
        reap(os.WNOHANG)
    reap()


def reap(options: int = 0) -> None:
    """Let go of the keepers that have ended, so that the time that they took is counted as the tests'."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def take(orders: socket.socket) -> tuple[list[str], dict[str, str], int, socket.socket] | None:
    """The next order: program, environment, where its output goes, and who waits for it. None: there are no more."""
    text, descriptors, _, _ = socket.recv_fds(orders, LARGEST, 2)
    if not text:
        return None
    output, tests = descriptors
    return *json.loads(text), output, socket.socket(fileno=tests)


def keep(tests: socket.socket, output: int) -> None:
    """Fork the server, and return in it. Here, in its keeper, wait for its end; where the tests end first, end it."""
    os.setsid()
    tests.send(str(os.getpid()).encode())
    server = os.fork()
    if server == 0:
        tests.close()
        for stream in (1, 2):
            os.dup2(output, stream)
        return
    tests.send(str(server).encode())
    if tests.fileno() in select.select([os.pidfd_open(server), tests.fileno()], [], [])[0]:
        os.kill(server, signal.SIGKILL)
    _, status = os.waitpid(server, 0)
    with suppress(OSError):
        tests.send(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def run(program: list[str], environment: dict[str, str]) -> None:
    sys.orig_argv = [sys.executable, *program]  # with which a server begins anew
    os.environ.clear()
    os.environ.update(environment)
    if program[0] == "-c":
        sys.argv = program[:1] + program[2:]
        exec(program[1], {"__name__": "__main__"})
    elif program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__")
    else:
        sys.argv = program
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
