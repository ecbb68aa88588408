"""Send when free: a question that could not be taken yet waits in its browser tab and is sent when it can be.

It waits for a free place, for the model to be loaded, or for the answer before it. The text stays in the browser, over
a reload as well; here stands only whose page waits, since when. A page that is told "now" sends by the usual way, with
the mark that it waited with, so nothing can be sent twice; one that finds the place taken again keeps its turn.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
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
    """Emits wait {mark} and leave; the browser hears of refusals and sends by window events."""

    def __init__(self, say: Language, person: str) -> None:
        super().__init__()
        self._props["person"] = person
        self._props["texts"] = {
            "whenFree": say("Send when a place is free"),
            "retry": say("Try again"),
            "place": say("Your message waits here and is sent as soon as a place is free. Keep this tab open."),
            "model": say("Your message waits here and is sent as soon as the model is ready. Keep this tab open."),
            "answer": say("Your message is sent when this answer has ended."),
            "cancel": say("Do not send"),
        }

    def send_now(self) -> None:
        self.run_method("sendNow")


@dataclass(frozen=True, slots=True)
class Turn:
    person: str
    mark: str  # of the question, which a page keeps over a reload
    answering: Callable[[], bool]  # whether something of the page's conversation is being answered


class WhenFree:
    """The pages that wait, in the order in which they began to."""

    def __init__(self, service: "ChatService") -> None:
        self._service = service
        self._line: dict[Waiting, Turn] = {}
        self._told: dict[Waiting, asyncio.TimerHandle] = {}  # those that may send now
        self._watch: asyncio.Task[None] | None = None

    def join(self, desk: Desk, visitor: "Visitor", waiting: Waiting, answering: Callable[[], bool]) -> None:
        """Let this page wait whenever its person wants it to."""

        async def wait(fields: dict[str, Any]) -> None:
            self._wait(waiting, Turn(visitor.user.id, str(fields.get("mark", ""))[:64], answering))

        async def leave(_: dict[str, Any]) -> None:
            self.leave(waiting)

        waiting.on("wait", guarded(desk, visitor, wait))
        waiting.on("leave", guarded(desk, visitor, leave))

    def leave(self, waiting: Waiting) -> None:
        """This page waits no more: it has sent, or was cancelled, or went away."""
        self._line.pop(waiting, None)
        if timer := self._told.pop(waiting, None):
            timer.cancel()

    def _wait(self, waiting: Waiting, turn: Turn) -> None:
        """A place that was taken again, or a page that was reloaded, keeps its turn."""
        for other, its in self._line.items():
            if (its.person, its.mark) == (turn.person, turn.mark) and not other.client.has_socket_connection:
                self._line = {waiting if one is other else one: which for one, which in self._line.items()}
                self.leave(other)
                break
        if timer := self._told.pop(waiting, None):
            timer.cancel()
        self._line[waiting] = turn
        if self._watch is None:
            self._watch = background_tasks.create(self._look(), name="send when free")

    async def _look(self) -> None:
        while self._line:
            free = self._free()
            for waiting, turn in list(self._line.items()):
                if waiting in self._told:
                    free -= 1  # its place is promised
                elif free > 0 and self._may(turn) and waiting.client.has_socket_connection:
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

    def _may(self, turn: Turn) -> bool:
        """Whether the answer before has ended, and this person has fewer questions in here than one may have."""
        mine = sum(job.request.person == turn.person for job in self._service.jobs.values())
        return mine < self._service.gate.limits.per_person and not turn.answering()
