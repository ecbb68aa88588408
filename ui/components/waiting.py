"""Send when free: a question that found every place taken waits in its browser tab and is sent when a place is free.

The text stays in the browser; here stands only whose page waits, since when. A page that is told "now" sends by the
usual way, with the usual mark, so nothing can be sent twice; one that finds the place taken again keeps its turn.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from nicegui import background_tasks
from nicegui.element import Element

from ui.components.guarded import guarded
from ui.desk import Desk
from ui.i18n import Language

if TYPE_CHECKING:
    from engine.service import ChatService
    from ui.auth import Visitor

LOOK_EVERY_S = 0.5
ANSWERS_WITHIN_S = 15.0  # a page that was told "now" and says nothing has given its turn up


class Waiting(Element, component="waiting.js"):
    """Emits wait and leave; the browser hears of refusals and sends by window events."""

    def __init__(self, say: Language) -> None:
        super().__init__()
        self._props["texts"] = {
            "whenFree": say("Send when a place is free"),
            "retry": say("Try again"),
            "waiting": say("Your message waits here and is sent as soon as a place is free. Keep this tab open."),
            "cancel": say("Do not send"),
        }

    def send_now(self) -> None:
        self.run_method("sendNow")


class WhenFree:
    """The pages that wait, in the order in which they began to."""

    def __init__(self, service: "ChatService") -> None:
        self._service = service
        self._line: dict[Waiting, Visitor] = {}
        self._told: dict[Waiting, asyncio.TimerHandle] = {}  # those that may send now
        self._watch: asyncio.Task[None] | None = None

    def join(self, desk: Desk, visitor: "Visitor", waiting: Waiting) -> None:
        """Let this page wait whenever its person wants it to."""

        async def wait(_: dict[str, Any]) -> None:
            self._wait(waiting, visitor)

        async def leave(_: dict[str, Any]) -> None:
            self.leave(waiting)

        waiting.on("wait", guarded(desk, visitor, wait))
        waiting.on("leave", guarded(desk, visitor, leave))

    def leave(self, waiting: Waiting) -> None:
        """This page waits no more: it has sent, or was cancelled, or went away."""
        self._line.pop(waiting, None)
        if timer := self._told.pop(waiting, None):
            timer.cancel()

    def _wait(self, waiting: Waiting, visitor: "Visitor") -> None:
        if timer := self._told.pop(waiting, None):
            timer.cancel()  # the place was taken again: it keeps its turn
        self._line.setdefault(waiting, visitor)
        if self._watch is None:
            self._watch = background_tasks.create(self._look(), name="send when free")

    async def _look(self) -> None:
        while self._line:
            free = self._free()
            for waiting, visitor in list(self._line.items()):
                if waiting in self._told:
                    free -= 1  # its place is promised
                elif free > 0 and self._may(visitor) and waiting.client.has_socket_connection:
                    free -= 1
                    self._tell(waiting)
            await asyncio.sleep(LOOK_EVERY_S)
        self._watch = None

    def _tell(self, waiting: Waiting) -> None:
        loop = asyncio.get_running_loop()
        self._told[waiting] = loop.call_later(ANSWERS_WITHIN_S, self.leave, waiting)
        waiting.send_now()

    def _free(self) -> int:
        if self._service.intake.trouble():
            return 0
        limits = self._service.gate.limits
        return limits.concurrent + limits.waiting - self._service.gate.depth

    def _may(self, visitor: "Visitor") -> bool:
        """Whether this person has fewer questions running and waiting than one may have."""
        person = visitor.user.id
        mine = sum(job.request.person == person for job in self._service.jobs.values())
        return mine < self._service.gate.limits.per_person
