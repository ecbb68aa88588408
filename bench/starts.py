"""How long a start takes: until the pages come, and until the packaged model answers, whose 4-bit folder is there.

    python -m bench.starts                         # five starts, one after the other; about a minute
    python -m bench.starts --model auto            # as `make run`: a hub is asked first, which may not answer

Asked ten times a second over HTTP, which the server is busy with as well. The first start of all, which fetches and
quantises the model, is no part of it.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx
import psutil

from bench.report import save
from tests.server import free_port

ROOT = Path(__file__).parent.parent
EVERY_S, PATIENCE_S = 0.1, 600.0
PATHS = {"listening": "/livez", "pages": "/login", "ready": "/readyz"}


def start(model: str) -> dict[str, float]:
    """Seconds from the start of the process to each of PATHS, and the processor time of all of it."""
    with tempfile.TemporaryDirectory() as folder:
        port, began = free_port(), time.perf_counter()
        settings = os.environ | {"QDESK_DATA_DIR": folder, "QDESK_MODEL": model, "QDESK_PORT": str(port)}
        log = (Path(folder) / "log").open("wb")
        with log, psutil.Popen([sys.executable, "main.py"], cwd=ROOT, env=settings, stdout=log, stderr=log) as server:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
                took = {name: _answered(client, path) - began for name, path in PATHS.items()}
            took["processor time"] = sum(server.cpu_times()[:2])
            server.terminate()
    return took


def _answered(client: httpx.Client, path: str) -> float:
    """When this path answered with 200."""
    until = time.perf_counter() + PATIENCE_S
    while time.perf_counter() < until:
        with suppress(httpx.TransportError):
            if client.get(path).status_code == 200:
                return time.perf_counter()
        time.sleep(EVERY_S)
    raise TimeoutError(path)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--times", type=int, default=5)
    options.add_argument("--model", default="packaged")
    chosen, began = options.parse_args(), datetime.now(UTC)
    start(chosen.model)  # what it reads comes from memory afterwards, as it does on a server that is started anew
    starts = [start(chosen.model) for _ in range(chosen.times)]
    seconds = {name: [one[name] for one in starts] for name in starts[0]}
    rows = [
        f"| {name} | {statistics.median(took):.1f} | {min(took):.1f} to {max(took):.1f} |"
        for name, took in seconds.items()
    ]
    save(
        began,
        "\n".join([f"| {chosen.times} starts, {chosen.model} | median, s | from, to |", "|---|---|---|", *rows]),
        seconds,
    )


if __name__ == "__main__":
    main()
