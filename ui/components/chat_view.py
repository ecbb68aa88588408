"""One open chat page: what people do on it goes to the service and the store.

Every handler asks who is there before it acts, and checks what came from the browser, whatever the components send.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from nicegui import background_tasks
from nicegui.events import GenericEventArguments

from engine.errors import InvalidRequest
from engine.job import Job
from ui.auth import Visitor
from ui.components.asking import Asking
from ui.components.composer import Composer
from ui.components.conversations import Conversations
from ui.components.drafting import Drafting
from ui.components.guarded import Fields, Handler, guarded
from ui.components.hub import Hub
from ui.components.preferences import Preferences, read_choice
from ui.components.shown import Shown
from ui.components.sidebar import Sidebar
from ui.components.thread import Rating, Thread
from ui.components.turn_actions import TurnActions
from ui.desk import Desk
from ui.elsewhere import stop
from ui.i18n import Language
from ui.page_ends import later

if TYPE_CHECKING:
    from storage.records import Conversation


class ChatView:
    def __init__(
        self,
        desk: Desk,
        hub: Hub,
        visitor: Visitor,
        say: Language,
        *,
        sidebar: Sidebar,
        thread: Thread,
        composer: Composer,
        preferences: Preferences,
    ) -> None:
        self.visitor = visitor
        self.shown = Shown(desk, say, thread, self._opening, self._answers_changed)
        self.list = Conversations(desk, hub, visitor, sidebar, say)
        self.say = say
        self._desk, self._hub = desk, hub
        self._sidebar, self._thread, self._composer, self._preferences = sidebar, thread, composer, preferences
        self.on_ended: Callable[[Job], None] = lambda job: None  # told of every answer of the person's that has ended
        self.asking = Asking(self, desk, hub, composer)
        self.settled = asyncio.Event()  # nothing is being opened: what the browser went to is shown, or could not be
        self._openings = 0
        self._minded: dict[str, asyncio.Task[None]] = {}  # by id of the person's jobs, whichever conversation is shown
        for event, handler in self.list.handlers():
            sidebar.on(event, self._guarded(handler))
        sidebar.on("open", self._guarded(self._visit))
        for event, handler in Drafting(desk, composer, say, self.shown).handlers():
            composer.on(event, self._guarded(handler))
        composer.on("ask", self._guarded(self.asking.ask))
        composer.on("stop", self._guarded(self._stop))
        thread.on("stop", self._guarded(self._stop))
        self.turns = TurnActions(self, desk, hub, thread, sidebar)
        for event, handler in self.turns.handlers():
            thread.on(event, self._guarded(handler))
        sidebar.on("restoreTurn", self._guarded(self.turns.restore))
        thread.on("lost", self._guarded(self._make_good))
        thread.on("visit", self._guarded(self._revisit))
        preferences.on("save", self._guarded(self._configure))

    def _guarded(self, handler: Handler) -> Callable[[GenericEventArguments], Awaitable[None]]:
        return guarded(self._desk, self.visitor, handler)

    # --- the page's life ---

    async def start(self, conversation_id: str) -> None:
        if self.shown.closed:
            return
        self._hub.join(self)
        for job in list(self._desk.service.jobs.values()):
            if job.request.person == self.visitor.user.id and job.request.source == "page":
                self.mind(job)
        await self.open(conversation_id)
        await self.list.refresh()

    def connected(self) -> None:
        """The browser is there, or there again."""
        self.shown.catch_up()

    def close(self) -> None:
        self._hub.leave(self)
        self.shown.close()
        for task in list(self._minded.values()):
            task.cancel()
        later(self._let_go)

    def _let_go(self) -> None:
        """Of the parts that hold this; the others stay, for whatever is under way all the same."""
        del self.asking, self.turns

    def mind(self, job: Job) -> None:
        """Keep an answer going while this page is open, also when the page shows another conversation."""
        if job.id not in self._minded:
            self._minded[job.id] = background_tasks.create(self._until_its_end(job), name=f"mind {job.id}")

    async def _until_its_end(self, job: Job) -> None:
        try:
            async with aclosing(job.follow(reading=False)) as updates:
                await anext(updates)  # it is watched from here on, however long the list takes
                await self.list.refresh()
                async for _ in updates:
                    pass
            self.on_ended(job)
        finally:
            del self._minded[job.id]
        await self.list.refresh()

    async def open(self, conversation_id: str, *, push: bool = False) -> None:
        self._openings += 1
        self.settled.clear()
        try:
            if not await self.shown.open(conversation_id, self.visitor.user.id, push=push):
                return
        except BaseException:
            self._opening()  # the browser's composer went ahead; what is shown is what was shown before
            raise
        finally:
            self._openings -= 1
            if not self._openings:
                self.settled.set()
        self._sidebar.select(self.shown.id)
        self.show_service()

    def begun(self, conversation: "Conversation", opening: int) -> None:
        """A new conversation is there, and is shown unless another was opened meanwhile."""
        if opening == self.shown.opened:
            self.shown.conversation = conversation
            self._sidebar.select(conversation.id)
            self._thread.named(conversation.id, conversation.title)

    def renamed(self, title: str) -> None:
        assert self.shown.conversation
        self.shown.conversation = replace(self.shown.conversation, title=title)
        self._thread.named(self.shown.id, title)

    def rated(self, rating: Rating) -> None:
        self._thread.rated([rating])

    def show_service(self) -> None:
        """Say what the server can do at present, and which settings hold."""
        service, say = self._desk.service, self.say
        kind, reason = service.state()
        sentences = {
            "ready": "",
            "loading": say("The model is loading. You can write already; it answers when it is ready."),
            "stalled": say("Answers are slower than usual at the moment."),
            "paused": service.intake.note or say("No questions are taken at the moment. You can write already."),
            "draining": service.intake.note
            or say("The server is about to restart. Running answers are finished first."),
            "failed": say("The model cannot answer at present: {reason}", reason=reason),
        }
        loading = service.intake.loading if kind == "loading" else None
        progress = (loading.done, loading.total) if loading else ()
        self._thread.service(kind, sentences[kind], service.backend.model, *progress)
        self._preferences.values(self.shown.chosen, self._desk.settings.system_prompt, service.max_new_tokens)

    def _opening(self) -> None:
        """Tell the composer what is shown, before it is: nobody finds it in another conversation than the page."""
        last = self.shown.path[-1].prompt if self.shown.path else ""
        self._composer.open(self.shown.id, running=self.shown.busy, last_question=last)

    def _answers_changed(self) -> None:
        self._composer.busy(self.shown.busy)

    # --- what people do ---

    async def _visit(self, fields: Fields) -> None:
        await self.open(str(fields.get("id", "")), push=True)

    async def _revisit(self, fields: Fields) -> None:
        """The browser went back or forward: its address has changed already."""
        await self.open(str(fields.get("id", "")))

    async def _stop(self, fields: Fields) -> None:
        """Stop or leave with one question, or with all of this conversation."""
        wanted = fields.get("id")
        for answer in list(self.shown.running.values()):
            if wanted in (None, answer.job.id):
                self._desk.service.stop_job(answer.job)
        for exchange in self.shown.elsewhere:
            if wanted in (None, exchange.id):
                stop(self._desk, exchange.id)

    async def _make_good(self, fields: Fields) -> None:
        self.shown.catch_up(all=True)

    async def _configure(self, fields: Fields) -> None:
        try:
            chosen = read_choice(fields, self.say)
        except InvalidRequest as error:
            self._preferences.rejected(str(error))
            return
        self.shown.chosen = chosen
        if self.shown.conversation:
            await self._desk.store.conversations.configure(
                self.shown.id, self.visitor.user.id, system_prompt=chosen.system_prompt, sampling=chosen.sampling
            )
        self.show_service()
        self._preferences.saved()
        if fields.get("regenerate"):
            await self.turns.regenerate({"id": fields["regenerate"]})
