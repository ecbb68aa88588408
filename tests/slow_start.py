"""The server with a backend whose loading a test ends: SIGUSR1 well, SIGUSR2 badly.

with running_server(program=SLOW_START, ready=False) as server:
    server.process.send_signal(signal.SIGUSR1)
"""

import asyncio
import runpy
import signal
import threading

from engine import backends
from engine.backends import Backend
from engine.backends.scripted import ScriptedBackend
from engine.errors import BackendFailed
from engine.settings import Settings
from engine.types import Progress, Report


class SlowStart(ScriptedBackend):
    def __init__(self) -> None:
        super().__init__()
        self.told = threading.Event()
        self.fails = False

    async def start(self, report: Report) -> None:
        report(Progress("downloading", 30, 100, "bytes"))
        await asyncio.to_thread(self.told.wait)
        if self.fails:
            raise BackendFailed("There is no model in this folder.")

    async def stop(self) -> None:
        self.told.set()


def run() -> None:
    backend = SlowStart()

    def fail() -> None:
        backend.fails = True
        backend.told.set()

    def create(settings: Settings) -> Backend:
        return backend

    signal.signal(signal.SIGUSR1, lambda *_: backend.told.set())
    signal.signal(signal.SIGUSR2, lambda *_: fail())
    backends.create_backend = create
    runpy.run_path("main.py", run_name="__main__")


if __name__ == "__main__":
    run()
