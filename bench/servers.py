"""Servers to compare, each started as a process of its own, awaited, and ended with its block.

Knows how each one is started with the packaged model in 4 bits, and nothing of figures. A peer that is not installed
raises NotHere with what to install.
"""

import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.load import Target

ROOT = Path(__file__).parent.parent
STREAMS = 16  # most streams that any server is asked for
PATIENCE_S = 600.0  # for a server to come up; a first start makes the 4-bit weights
ENDLESS = (("ignore_eos", True),)  # so that every answer has all its tokens


class NotHere(Exception):
    """This peer cannot be measured here; the text says why."""


@contextmanager
def qdesk(model: str = "packaged", **more: str) -> Iterator[Target]:
    """This checkout, as `make run` serves it; `more` are settings by their names in the environment."""
    with tempfile.TemporaryDirectory() as data:
        port, key = _free_port(), "sk-bench"
        settings = {
            "QDESK_PORT": str(port),
            "QDESK_DATA_DIR": data,
            "QDESK_MODEL": model,
            "QDESK_API_KEY": key,
            "QDESK_MAX_CONCURRENT_REQUESTS": str(STREAMS),
            **more,
        }
        with _process([sys.executable, "main.py"], f"http://127.0.0.1:{port}/readyz", settings) as pid:
            yield Target(f"http://127.0.0.1:{port}/v1", key=key, extra=ENDLESS, pid=pid)


@contextmanager
def naive(folder: Path) -> Iterator[Target]:
    """One `generate` in a thread for each request."""
    port = _free_port()
    command = [sys.executable, "bench/peers/naive.py", str(folder), "--port", str(port), "--limit", str(STREAMS)]
    with _process(command, f"http://127.0.0.1:{port}/v1/models"):
        yield Target(f"http://127.0.0.1:{port}/v1", extra=ENDLESS)


@contextmanager
def transformers_serve(folder: Path) -> Iterator[Target]:
    """transformers' own server with continuous batching and 4-bit weights."""
    if missing := [name for name in ("fastapi", "openai") if importlib.util.find_spec(name) is None]:
        raise NotHere(f"pip install {' '.join(missing)}")
    port = _free_port()
    options = ["--continuous-batching", "--quantization", "bnb-4bit", "--port", str(port)]
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(folder), *options]
    with _process(command, f"http://127.0.0.1:{port}/health", {"HF_HUB_OFFLINE": "1"}):
        yield Target(f"http://127.0.0.1:{port}/v1", model=str(folder))


@contextmanager
def _process(command: list[str], ready: str, environment: Mapping[str, str] | None = None) -> Iterator[int]:
    """Run a server; the block gets its process's id once it is ready."""
    with tempfile.TemporaryFile("w+") as log:
        server = subprocess.Popen(command, cwd=ROOT, env=os.environ | (environment or {}), stdout=log, stderr=log)
        try:
            _await(server, ready)
            yield server.pid
        except RuntimeError as error:
            log.seek(0)
            raise RuntimeError(f"{error}\n{log.read()[-3000:]}") from error
        finally:
            server.terminate()
            server.wait(60)


def _await(server: "subprocess.Popen[bytes]", ready: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            if httpx.get(ready, timeout=5).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.5)
    raise RuntimeError(f"{server.args!r} did not come up")


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
