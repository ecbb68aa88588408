"""What is compared, each in a process of its own: servers, awaited and ended with their block, and measuring programs.

Knows how each one is started with the packaged model in 4 bits, and not what its figures mean. A peer that is not
installed raises NotHere with what to install.
"""

import importlib.util
import json
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

from bench.load import Figures, Target
from bench.weights import packaged_gguf

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


def of_another(url: str) -> Target:
    """A server that runs already, with the first model that it says it has."""
    name: str = httpx.get(f"{url}/models").raise_for_status().json()["data"][0]["id"]
    return Target(url, model=name)


def llama(*options: str) -> Iterator[list[Figures]]:
    """llama.cpp in a process of its own, on the packaged GGUF: what bench.peers.llama measures with these options."""
    if importlib.util.find_spec("llama_cpp") is None:
        raise NotHere("pip install llama-cpp-python, which needs a C++ compiler and its time")
    yield from figures_of("bench.peers.llama", str(packaged_gguf()), *options)


def figures_of(module: str, *arguments: str) -> Iterator[list[Figures]]:
    """What a program prints, a JSON list of figures a line, as it comes. Raises RuntimeError when it fails."""
    command = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile("w+") as log:
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True) as program:
            for line in program.stdout or ():
                yield [Figures(**one) for one in json.loads(line)]
        if program.returncode:
            log.seek(0)
            raise RuntimeError(f"{module} ended with {program.returncode}: {log.read()[-3000:]}")


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
