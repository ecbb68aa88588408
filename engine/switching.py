"""Another model in the place of the one that runs, or the same one loaded again, without a restart.

The gate lets nobody in, and who waits goes on waiting; running answers finish, or are stopped after `drain_s`; the
backend is closed and another started. Where that one cannot be loaded the earlier one is loaded again, and the reason
is kept for those who look. Knows no pages; lives on the event loop alone.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from loguru import logger

from engine.backends import Backend
from engine.errors import EngineError, InvalidRequest, NotReady
from engine.settings import Settings
from engine.types import Status

if TYPE_CHECKING:
    from engine.service import ChatService

LETTING_GO_S = 10.0  # a backend that does not let go of its streams is closed with them after this long
STOPPED = "Another model was loaded before this answer was finished."


class Switching:
    def __init__(self, service: "ChatService", make: Callable[[Settings], Backend]) -> None:
        self._service, self._make = service, make
        self.name = service.settings.model  # what is loaded, as QDESK_MODEL would say it
        self.wanted = ""  # what is to be loaded in its place, while that goes on
        self.step: Literal["", "finishing", "loading"] = ""
        self.failure: tuple[str, str] | None = None  # the model that could not be loaded, and why
        self._task: asyncio.Task[None] | None = None

    def begin(self, name: str) -> "asyncio.Task[None]":
        """Load this one of the listed models; what is returned never raises, and goes on by itself.

        Raises InvalidRequest for a model that is not listed, and NotReady while one is being loaded.
        """
        service = self._service
        if name not in service.settings.listed_models:
            raise InvalidRequest(f"{name} is not one of the listed models.", param="model")
        if self.wanted or service.intake.is_loading:
            raise NotReady("A model is being loaded already.", code="model_loading", retry_after_s=5)
        self.wanted, self.step, self.failure = name, "finishing", None
        service.places.hold(True)
        self._task = asyncio.create_task(self._switch(name), name=f"load {name}")
        return self._task

    def give_up(self) -> None:
        """The server goes down: what waits may still run on the model there is, unless that is gone already."""
        if self.step == "finishing":
            self._service.places.hold(False)

    async def _switch(self, name: str) -> None:
        earlier = self.name
        try:
            await self._finish()
            if failure := await self._replace(name):
                logger.error("{} cannot be loaded: {}", name, failure)
                self.failure = name, str(failure)
                again = await self._replace(earlier) if name != earlier else failure
                if again:
                    self._service.intake.fail(str(again), again.__cause__)
        finally:
            self.wanted = self.step = ""
            self._service.places.hold(False)

    async def _finish(self) -> None:
        """Let what runs come to its end, or stop it."""
        service = self._service
        for seconds in (service.settings.drain_s, LETTING_GO_S):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while service.places.own()[0]:
                        service.left.clear()
                        await service.left.wait()
            for job in service.running:
                service.end(job, Status.INTERRUPTED, EngineError(STOPPED))
        await service.spare.give_way()

    async def _replace(self, name: str) -> EngineError | None:
        """Close the backend there is, and start one with this model. A server that goes down is left as it is."""
        service = self._service
        if not service.intake.load_again():
            return None
        self.step = "loading"
        await service.backend.stop()
        service.use(self._make(service.settings.model_copy(update={"model": name})))
        failure = await service.load()
        if failure is None:
            self.name = name
        return failure
