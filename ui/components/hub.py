"""Which chat pages are open, so that what happens on one is seen on the others of the same person.

Also tells them when the service becomes ready or cannot answer any more: one look a second for all pages.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from nicegui import background_tasks

from ui.components.titles import Titles
from ui.desk import Desk

if TYPE_CHECKING:
    from engine.job import Job
    from ui.components.chat_view import ChatView

LOOK_EVERY_S = 1.0
MARKS = 10_000  # of questions taken, that are remembered


class Hub:
    def __init__(self, desk: Desk) -> None:
        self._service, self._bus = desk.service, desk.bus
        desk.bus.on("list", self._changed_elsewhere)
        desk.bus.on("asked", self._asked_elsewhere)
        self._titles = Titles(desk, self)
        self._views: set[ChatView] = set()
        self._watch: asyncio.Task[None] | None = None
        self._taken: set[str] = set()  # conversations whose tree is being changed by one of the pages
        self._marks: dict[tuple[str, str], None] = {}  # of questions, by person and the browser's own mark

    def join(self, view: "ChatView") -> None:
        self._views.add(view)
        if self._watch is None:
            self._watch = background_tasks.create(self._watch_service(), name="service state for chat pages")

    def leave(self, view: "ChatView") -> None:
        self._views.discard(view)

    def of(self, user_id: str) -> "list[ChatView]":
        return [view for view in self._views if view.visitor.user.id == user_id]

    async def list_changed(self, user_id: str) -> None:
        """Show the list of conversations anew on all pages of the person."""
        self._bus.tell("list", user_id)
        await self._refresh(user_id)

    async def _refresh(self, user_id: str) -> None:
        for view in self.of(user_id):
            await view.list.refresh()

    def _changed_elsewhere(self, user_id: str) -> None:
        background_tasks.create_lazy(self._refresh(user_id), name=f"list of {user_id}")

    def showing(self, conversation_id: str) -> "list[ChatView]":
        return [view for view in self._views if conversation_id and view.shown.id == conversation_id]

    @contextmanager
    def alone_with(self, conversation_id: str) -> Iterator[bool]:
        """Whether no other page is about to change this conversation; none may until the block ends."""
        free = conversation_id not in self._taken
        mine = {conversation_id} if conversation_id and free else set()
        self._taken |= mine
        try:
            yield free
        finally:
            self._taken -= mine

    @contextmanager
    def once(self, user_id: str, mark: str) -> Iterator[bool]:
        """Whether no question of this mark was taken yet; it is, unless the block raises. Without a mark always."""
        key, new = (user_id, mark), (user_id, mark) not in self._marks
        if mark and new:
            self._marks[key] = None
            if len(self._marks) > MARKS:
                del self._marks[next(iter(self._marks))]
        try:
            yield new
        except BaseException:
            if new:
                self._marks.pop(key, None)
            raise

    def asked(self, job: "Job") -> None:
        """A question is on its way: all pages of the person mind it, and those that show its conversation follow."""
        for view in self.of(job.request.person or ""):
            view.mind(job)
        for view in self.showing(job.request.conversation_id or ""):
            view.shown.join(job)
        self._titles.after(job)

    def written(self, conversation_id: str) -> None:
        """A question of this conversation is in the log: pages that other processes serve can find it there."""
        self._bus.tell("asked", conversation_id)

    def _asked_elsewhere(self, conversation_id: str) -> None:
        for view in self.showing(conversation_id):
            background_tasks.create(view.open(conversation_id), name=f"show what was asked in {conversation_id}")

    async def _watch_service(self) -> None:
        """Tell the pages when what the service can do changes; ends with the last page."""
        told: object = None
        while self._views:
            now = (self._service.state(), self._service.intake.loading)
            if now != told:
                told = now
                for view in list(self._views):
                    view.show_service()
            await asyncio.sleep(LOOK_EVERY_S)
        self._watch = None
