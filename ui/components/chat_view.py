"""One open chat page: what people do on it goes to the service and the store.

Every handler asks who is there before it acts, and checks what came from the browser, whatever the components send.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loguru import logger
from nicegui import background_tasks
from nicegui.events import GenericEventArguments

from engine.errors import EngineError, InvalidRequest
from engine.job import Job
from engine.types import ChatRequest, Exchange, Sampling
from ui.auth import Visitor
from ui.components.composer import LONGEST_MESSAGE, Composer
from ui.components.conversations import Conversations
from ui.components.hub import Hub
from ui.components.preferences import Chosen, Preferences, read_choice
from ui.components.prompt import messages_for
from ui.components.refusals import not_taken, refusal
from ui.components.shown import Shown
from ui.components.sidebar import Sidebar
from ui.components.thread import Thread
from ui.components.turns import answered
from ui.desk import Desk
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import Conversation

TITLE_LENGTH = 60  # characters of the first question that become the conversation's title

Fields = dict[str, Any]
Handler = Callable[[Fields], Awaitable[None]]


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
        self.shown = Shown(desk, say, thread, self._answers_changed)
        self.list = Conversations(desk, hub, visitor, sidebar)
        self.say = say
        self._desk, self._hub = desk, hub
        self._sidebar, self._thread, self._composer, self._preferences = sidebar, thread, composer, preferences
        self._asking = False
        self._taken: set[str] = set()  # questions taken, by the browser's own mark
        self._minded: dict[str, asyncio.Task[None]] = {}  # by id of the person's jobs, whichever conversation is shown
        for event, handler in self.list.handlers():
            sidebar.on(event, self._guarded(handler))
        sidebar.on("open", self._guarded(self._visit))
        composer.on("ask", self._guarded(self._ask))
        composer.on("stop", self._guarded(self._stop))
        thread.on("stop", self._guarded(self._stop))
        thread.on("regenerate", self._guarded(self._regenerate))
        thread.on("version", self._guarded(self._show_version))
        thread.on("lost", self._guarded(self._make_good))
        thread.on("visit", self._guarded(self._revisit))
        preferences.on("save", self._guarded(self._configure))

    def _guarded(self, handler: Handler) -> Callable[[GenericEventArguments], Awaitable[None]]:
        async def handle(event: GenericEventArguments) -> None:
            if self._desk.auth.allowed(self.visitor) and isinstance(event.args, dict):
                await handler(event.args)

        return handle

    # --- the page's life ---

    async def start(self, conversation_id: str) -> None:
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
        self.shown.stop_following()
        for task in list(self._minded.values()):
            task.cancel()

    def mind(self, job: Job) -> None:
        """Keep an answer going while this page is open, also when the page shows another conversation."""
        if job.id not in self._minded:
            self._minded[job.id] = background_tasks.create(self._until_its_end(job), name=f"mind {job.id}")

    async def _until_its_end(self, job: Job) -> None:
        try:
            await self.list.refresh()
            async with aclosing(job.follow(reading=False)) as updates:
                async for _ in updates:
                    pass
        finally:
            del self._minded[job.id]
        await self.list.refresh()

    async def open(self, conversation_id: str, *, push: bool = False) -> None:
        if not await self.shown.open(conversation_id, self.visitor.user.id, push=push):
            return
        last = self.shown.path[-1].prompt if self.shown.path else ""
        self._composer.open(self.shown.id, running=bool(self.shown.running), last_question=last)
        self._sidebar.select(self.shown.id)
        self.show_service()

    def renamed(self, title: str) -> None:
        assert self.shown.conversation
        self.shown.conversation = replace(self.shown.conversation, title=title)
        self._thread.named(self.shown.id, title)

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
        loading = service.loading if kind == "loading" else None
        progress = (loading.done, loading.total) if loading else ()
        self._thread.service(kind, sentences[kind], service.backend.model, *progress)
        self._preferences.values(self.shown.chosen, self._desk.settings.system_prompt, service.max_new_tokens)

    def _answers_changed(self) -> None:
        self._composer.busy(bool(self.shown.running))

    # --- what people do ---

    async def _visit(self, fields: Fields) -> None:
        await self.open(str(fields.get("id", "")), push=True)

    async def _revisit(self, fields: Fields) -> None:
        """The browser went back or forward: its address has changed already."""
        await self.open(str(fields.get("id", "")))

    async def _ask(self, fields: Fields) -> None:
        text, nonce = str(fields.get("text", "")), str(fields.get("nonce", ""))[:64]
        if nonce in self._taken or self._asking or not text.strip():
            return
        self._asking = True
        try:
            self._check(text, fields.get("conversation"))
            await self._submit(text, self.shown.path, nonce=nonce)
        except EngineError as error:
            self._composer.refused(nonce, refusal(error, self.say), retry=not isinstance(error, InvalidRequest))
        except Exception as error:
            logger.opt(exception=error).error("a question could not be taken")
            trouble = bool(self._desk.store.exchanges.health())
            self._composer.refused(nonce, not_taken(self.say, trouble), retry=True)
        finally:
            self._asking = False

    async def _regenerate(self, fields: Fields) -> None:
        """Ask again what this exchange asked: a new version beside it."""
        found = self.shown.parent_of(str(fields.get("id", "")))
        if not found or self._asking or self.shown.running:
            return
        self._asking = True
        try:
            await self._submit(*found)
        except EngineError as error:
            self._composer.refused("", refusal(error, self.say), retry=False)
        finally:
            self._asking = False

    async def _stop(self, fields: Fields) -> None:
        """Stop or leave with one question, or with all of this conversation."""
        wanted = fields.get("id")
        for answer in list(self.shown.running.values()):
            if wanted in (None, answer.job.id):
                self._desk.service.stop_job(answer.job)

    async def _show_version(self, fields: Fields) -> None:
        head_id = await self.shown.show_version(str(fields.get("id", "")))
        if head_id:
            await self._desk.store.conversations.set_head(self.shown.id, self.visitor.user.id, head_id)

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

    # --- a question's way ---

    def _check(self, text: str, conversation_id: object) -> None:
        """Raises InvalidRequest for what the composer would not have sent."""
        if len(text) > LONGEST_MESSAGE:
            raise InvalidRequest(self.say("A message may have {limit} characters.", limit=LONGEST_MESSAGE))
        if self.shown.running:
            raise InvalidRequest(self.say("An answer is on its way. Wait for it, or stop it first."))
        if conversation_id != self.shown.id:
            raise InvalidRequest(self.say("Another conversation was opened meanwhile. Please send again."))

    async def _submit(self, question: str, above: list[Exchange], *, nonce: str = "") -> None:
        self._desk.service.check_open()
        conversation, chosen = self.shown.conversation, self.shown.chosen
        new, opening = conversation is None, self.shown.opened
        conversation = conversation or await self._create(question, chosen)
        try:
            job = await self._desk.service.submit(await self._request(question, above, conversation, chosen))
        except BaseException:
            if new:  # nobody shall find an empty conversation in the list
                await self._desk.store.conversations.delete(conversation.id, self.visitor.user.id)
            raise
        self._taken.add(nonce)
        if new and opening == self.shown.opened:
            self.shown.conversation = conversation
            self._sidebar.select(conversation.id)
            self._thread.named(conversation.id, conversation.title)
        self._composer.taken(nonce, conversation.id)
        self._hub.asked(job)
        await self._desk.store.conversations.set_head(conversation.id, self.visitor.user.id, job.id)

    async def _request(
        self, question: str, above: list[Exchange], conversation: "Conversation", chosen: Chosen
    ) -> ChatRequest:
        service = self._desk.service
        system_prompt = self._desk.settings.system_prompt if chosen.system_prompt is None else chosen.system_prompt
        count, room = service.backend.count_tokens, service.backend.context_tokens
        messages = await messages_for(question, answered(above), system_prompt, count=count, room=room)
        return ChatRequest(
            messages=messages,
            sampling=chosen.sampling or Sampling(),
            person=self.visitor.user.id,
            source="page",
            conversation_id=conversation.id,
            parent_id=above[-1].id if above else None,
        )

    async def _create(self, question: str, chosen: Chosen) -> "Conversation":
        line = " ".join(question.strip().splitlines()[0].split())
        title = line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
        return await self._desk.store.conversations.create(
            self.visitor.user.id, title=title, system_prompt=chosen.system_prompt, sampling=chosen.sampling
        )
