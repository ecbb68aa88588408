"""The real server for tests: `main.py` in a process of its own, with the scripted backend, on a free port by itself.

    with running_server(max_concurrent_requests=1) as server:
        httpx.get(server.url + "/livez")

Leaving the block sends SIGTERM and asserts that the process ends with 0 and leaves no other behind.
"""

import atexit
import os
import random
import re
import secrets
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import IO, Any

import httpx

from storage.records import UserRole
from tests.databases import PASSWORD as PASSWORD
from tests.databases import SECRET, new_database
from tests.databases import key_of as key_of
from tests.forge import Forge, Forged, Process
from ui.seal import Seal

ROOT = Path(__file__).parent.parent
API_KEY = "sk-qdesk-fixed-key-of-the-tests"  # the operator's
SLOW_START = ("-m", "tests.slow_start")
FORGES = sys.platform == "linux"
STARTS_WITHIN_S, STOPS_WITHIN_S = 60.0, 60.0


@dataclass(frozen=True)
class RunningServer:
    url: str
    data_dir: Path
    process: Process
    log: Path

    def output(self) -> str:
        """All that the server has written so far."""
        return self.log.read_text(encoding="utf-8")

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """What the database holds now, read beside the server."""
        with closing(sqlite3.connect(f"file:{self.data_dir / 'qdesk.db'}?mode=ro", uri=True)) as database:
            return database.execute(sql, values).fetchall()

    def change(self, sql: str, *values: object) -> None:
        """Change the database beside the server, as an operator with a shell might."""
        with closing(sqlite3.connect(self.data_dir / "qdesk.db", timeout=30)) as database, database:
            database.execute(sql, values)

    def status_of(self, id: str) -> str:
        """The status of an exchange as it is recorded; "" where there is none."""
        return next((str(row[0]) for row in self.rows("select status from exchanges where id = ?", id)), "")

    def new_session(self, name: str) -> str:
        """The token of a session of this person, put in beside the server: checking a password takes its time."""
        assert self.rows("select id from users where name = ?", name), f"there is no account {name[:50]!r}"
        token, now = secrets.token_urlsafe(), datetime.now(UTC)
        at, until = (f"{when:%Y-%m-%d %H:%M:%S.%f}" for when in (now, now + timedelta(days=1)))
        sealed = Seal(SECRET.encode())("session", token)
        session = "insert into sessions select ?, id, ?, 'tests', ?, ?, ?, '' from users where name = ?"
        self.change(session, secrets.token_hex(16), sealed, at, at, until, name)
        self.change("update users set last_seen_at = ? where name = ?", at, name)
        return token

    @contextmanager
    def sign_in(self, name: str = "admin", password: str = PASSWORD, **headers: str) -> Iterator[httpx.Client]:
        """A browser without scripts that has signed in."""
        with httpx.Client(base_url=self.url, headers=headers, timeout=60) as browser:
            assert sign_in(browser, name, password).status_code == 303
            yield browser


@contextmanager
def running_server(
    data_dir: Path | None = None,
    *,
    ready: bool = True,
    accounts: Mapping[str, UserRole] | None = None,
    program: tuple[str, ...] = ("main.py",),
    forged: bool = FORGES,
    log: Path | None = None,
    **settings: object,
) -> Iterator[RunningServer]:
    """Start the server with these settings (names as in engine/settings.py) and stop it at the end.

    `ready` False returns as soon as it answers at all. `data_dir` is kept; without it a folder is made and removed.
    `log` is where it writes, if not into a file that is removed.
    `program` is what Python runs; `SLOW_START` is `main.py` with a backend that starts when it is told to.
    `forged` False starts Python anew instead of forking it from tests/forge.py, for tests of the start itself.
    `accounts` are made beside `admin`, all with PASSWORD and the key `key_of(name)`: {"ada": "staff"}.
    """
    with tempfile.TemporaryDirectory(prefix="qdesk-") as name:
        if data_dir is None:
            data_dir = Path(name) / "data"
            if forged and "admin_password" not in settings:
                new_database(data_dir / "qdesk.db", {"admin": "admin", **(accounts or {})}, keys=bool(accounts))
        with _started(log or Path(name) / "log", data_dir, program, forged, settings) as server:
            _wait_for(server, "/readyz" if ready else "/livez")
            yield server


def bearer(key: str = API_KEY) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@contextmanager
def _started(
    log: Path, data_dir: Path, program: tuple[str, ...], forged: bool, settings: dict[str, object]
) -> Iterator[RunningServer]:
    port = settings.get("port") or free_port()
    chosen = {
        "backend": "scripted",
        "admin_password": PASSWORD,
        "api_key": API_KEY,
        "session_secret": SECRET,
        "drain_s": 5,
        **settings,
        "host": "127.0.0.1",
        "port": port,
        "data_dir": data_dir,
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("QDESK_", "PYTEST_"))}
    environment |= {f"QDESK_{name.upper()}": str(value) for name, value in chosen.items()}
    with log.open("wb") as output:
        process = start(program, environment, output, forged)
    server = RunningServer(f"http://127.0.0.1:{port}", data_dir, process, log)
    try:
        yield server
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOPS_WITHIN_S) == 0, server.output()
        if process.returncode == 0 and isinstance(process, Forged):
            assert process.left() == [], "processes that the server has begun outlive it"
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def start(
    program: tuple[str, ...], environment: Mapping[str, str], output: IO[bytes], forged: bool = FORGES
) -> Process:
    """Python's arguments `program` in a process of its own, from the forge where there is one."""
    if forged:
        return forge().start(program, environment, output)
    command = [sys.executable, *program]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)


def run_to_its_end(
    program: tuple[str, ...], environment: Mapping[str, str] = os.environ, forged: bool = FORGES
) -> tuple[int, str]:
    """Python's arguments `program` in a process of its own: its exit code, and all that it writes."""
    with tempfile.TemporaryFile() as output:
        code = start(program, environment, output, forged).wait(60)
        output.seek(0)
        return code, output.read().decode()


@cache
def forge() -> Forge:
    """One for all that this process starts."""
    forge = Forge()
    atexit.register(forge.close)
    return forge


def _wait_for(server: RunningServer, path: str) -> None:
    def there() -> bool:
        assert server.process.poll() is None, server.output()
        with suppress(httpx.TransportError):
            return client.get(path).status_code == 200
        return False

    with httpx.Client(base_url=server.url) as client:
        eventually(there, within_s=STARTS_WITHIN_S)


def eventually(condition: Callable[[], object], *, within_s: float = 30) -> None:
    """Wait until another process has come to this, which sends no event."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"not so within {within_s:g} s: {condition}"
        time.sleep(0.05)


def free_port() -> int:
    """At random, because other tests may look for one now, and below those that outgoing connections are given."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def form_token(page: str) -> str:
    """The token of the form on this page."""
    plain, built = r'name="form_token" value="(\w+)"', r'"name":"form_token","value":"(\w+)"'
    found = re.search(plain, page) or re.search(built, page)
    assert found, page
    return found[1]


def sign_in(browser: httpx.Client, name: str, password: str, next: str = "/") -> httpx.Response:
    token = form_token(browser.get("/login").text)
    return browser.post("/login", data={"form_token": token, "name": name, "password": password, "next": next})
