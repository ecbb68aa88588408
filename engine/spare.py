"""What the model does while nobody asks it anything: small requests of the server's own, which give way at once.

They take no place in the gate and are not recorded: nobody asked them, and nobody waits for them. Lives on the event
loop alone.
"""

import asyncio
from contextlib import aclosing

from engine.backends import Backend
from engine.gate import Gate
from engine.types import ChatRequest, Delta

LIMIT_S = 60.0  # longer than this no such request may take


class SpareTime:
    def __init__(self, backend: Backend, gate: Gate) -> None:
        self.backend, self._gate = backend, gate
        self._running: asyncio.Task[str] | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing runs or waits, of people's or of the server's own."""
        free = self._gate.depth == 0 and not self._gate.held and self._running is None
        return free and self.backend.health() is None

    async def answer(self, request: ChatRequest) -> str | None:
        """The answer; None where somebody asks something before it is there. Raises what the backend raises, and
        TimeoutError."""
        if not self.idle:
            return None
        task = self._running = asyncio.create_task(self._collect(request), name="in spare time")
        try:
            await asyncio.wait([task])
            return None if task.cancelled() else task.result()
        finally:
            task.cancel()
            self._running = None

    async def give_way(self) -> None:
        """Let go of the backend: somebody asks. Returns when it is free."""
        if self._running:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _collect(self, request: ChatRequest) -> str:
        async with asyncio.timeout(LIMIT_S), aclosing(self.backend.stream(request)) as events:
            return "".join([event.text async for event in events if isinstance(event, Delta)])
