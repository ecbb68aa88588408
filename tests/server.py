"""The real server for tests: `main.py` in a process of its own, on a free port, with the scripted backend.

    with running_server(max_concurrent_requests=1) as server:
        httpx.get(server.url + "/livez")

Leaving the block sends SIGTERM and asserts that the process ends with 0.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent
PASSWORD = "correct horse battery"  # of the account `admin`
API_KEY = "sk-qdesk-fixed-key-of-the-tests"  # the operator's
STARTS_WITHIN_S, STOPS_WITHIN_S = 60.0, 60.0


@dataclass(frozen=True)
class RunningServer:
    url: str
    data_dir: Path
    process: subprocess.Popen[bytes]
    log: Path

    def output(self) -> str:
        """All that the server has written so far."""
        return self.log.read_text(encoding="utf-8")

    def sign_in(self, name: str = "admin", password: str = PASSWORD, **headers: str) -> httpx.Client:
        """A browser without scripts that has signed in; close it after use."""
        browser = httpx.Client(base_url=self.url, headers=headers, timeout=30)
        assert sign_in(browser, name, password).status_code == 303
        return browser


@contextmanager
def running_server(data_dir: Path | None = None, *, ready: bool = True, **settings: object) -> Iterator[RunningServer]:
    """Start the server with these settings (names as in engine/settings.py) and stop it at the end.

    `ready` False returns as soon as it answers at all. `data_dir` is kept; without it a folder is made and removed.
    """
    with tempfile.TemporaryDirectory(prefix="qdesk-") as name, _started(Path(name), data_dir, settings) as server:
        _wait_for(server, "/readyz" if ready else "/livez")
        yield server


@contextmanager
def _started(folder: Path, data_dir: Path | None, settings: dict[str, object]) -> Iterator[RunningServer]:
    port, log = free_port(), folder / "log"
    data_dir = data_dir or folder / "data"
    chosen = {
        "backend": "scripted",
        "admin_password": PASSWORD,
        "api_key": API_KEY,
        "drain_s": 5,
        **settings,
        "host": "127.0.0.1",
        "port": port,
        "data_dir": data_dir,
    }
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("QDESK_", "PYTEST_"))}
    environment |= {f"QDESK_{name.upper()}": str(value) for name, value in chosen.items()}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "main.py"], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    server = RunningServer(f"http://127.0.0.1:{port}", data_dir, process, log)
    try:
        yield server
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(STOPS_WITHIN_S) == 0, server.output()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _wait_for(server: RunningServer, path: str) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline:
        assert server.process.poll() is None, server.output()
        try:
            if httpx.get(server.url + path).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"{path} is not there after {STARTS_WITHIN_S:g} s:\n{server.output()}")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def form_token(page: str) -> str:
    """The token of the form on this page."""
    found = re.search(r'name="form_token" value="(\w+)"', page)
    assert found, page
    return found[1]


def sign_in(browser: httpx.Client, name: str, password: str, next: str = "/") -> httpx.Response:
    token = form_token(browser.get("/login").text)
    return browser.post("/login", data={"form_token": token, "name": name, "password": password, "next": next})
