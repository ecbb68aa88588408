"""A question's way from one open page to the service: taken once, never beside another of the same conversation."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from loguru import logger

from engine.errors import EngineError, InvalidRequest
from engine.types import ChatRequest, Exchange, Sampling
from ui.components.attachments import LONGEST_MESSAGE, question_of
from ui.components.composer import Composer
from ui.components.hub import Hub
from ui.components.preferences import Chosen
from ui.components.prompt import messages_for
from ui.components.refusals import WaitsFor, not_taken, refusal, waits_for
from ui.components.turns import answered
from ui.desk import Desk
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import Conversation
    from ui.components.chat_view import ChatView

TITLE_LENGTH = 60  # characters of the first question that become the conversation's title

Refused = Callable[[str, bool, WaitsFor | None], None]  # told why, whether to try again, and what could be waited for


class Asking:
    def __init__(self, view: "ChatView", desk: Desk, hub: Hub, composer: Composer) -> None:
        self._view, self._desk, self._hub, self._composer = view, desk, hub, composer
        self._busy = False

    async def ask(self, fields: dict[str, Any]) -> None:
        """What the composer sends: the next question of the branch that is shown."""
        text, nonce = question_of(fields), str(fields.get("nonce", ""))[:64]
        if not text.strip():
            return
        await self._view.settled.wait()  # the composer goes ahead to a conversation that is being opened

        async def ask() -> None:
            self.check_length(text)
            self.check_free()
            if fields.get("conversation") != self._view.shown.id:
                raise InvalidRequest(self._say("Another conversation was opened meanwhile. Please send again."))
            taken = partial(self._composer.taken, nonce)
            await self.submit(text, self._view.shown.path, taken=taken)

        def refused(sentence: str, retry: bool, waits_for: WaitsFor | None) -> None:
            self._composer.refused(nonce, sentence, retry=retry, waits_for=waits_for)

        await self.once(nonce, ask, refused)

    async def ask_again(self, ask: Callable[[], Awaitable[None]]) -> None:
        """Ask what needs no text from the composer; not while something of the conversation is being answered."""

        async def alone() -> None:
            self.check_free()
            await ask()

        await self.once("", alone, self.tell)

    def tell(self, sentence: str, *_: object) -> None:
        """Say above the composer why something was not done, whatever the draft is."""
        self._composer.refused("", sentence, retry=False)

    async def once(self, nonce: str, ask: Callable[[], Awaitable[None]], refused: Refused) -> None:
        """Run `ask` unless one is being taken; tell what stands in its way.

        A question that was taken already, by the browser's own mark, has come again: from a page that was reloaded
        before it was told, or from a copy of it.
        """
        if self._busy:
            return
        self._busy = True
        try:
            with self._hub.alone_with(self._view.shown.id) as alone, self._hub.once(self._user_id, nonce) as new:
                if not new:
                    raise InvalidRequest(self._say("This message was sent already."))
                if not alone:
                    raise self._another()
                await ask()
        except EngineError as error:
            refused(refusal(error, self._say), not isinstance(error, InvalidRequest), waits_for(error))
        except Exception as error:
            logger.opt(exception=error).error("a question could not be taken")
            refused(not_taken(self._say, bool(self._desk.store.exchanges.health())), True, None)
        finally:
            self._busy = False

    async def submit(
        self,
        question: str,
        above: list[Exchange],
        *,
        goes_on: Exchange | None = None,
        taken: Callable[[str], None] = lambda conversation_id: None,
    ) -> None:
        """Ask below `above`, or go on with an answer; `taken` is told the conversation's id before anything is shown.

        Raises EngineError, and then leaves nothing.
        """
        self._desk.service.check_open(self._user_id)
        shown = self._view.shown
        conversation, chosen, opening = shown.conversation, shown.chosen, shown.opened
        new = conversation is None
        conversation = conversation or await self._create(question, chosen)
        try:
            job = await self._desk.service.submit(await self._request(question, above, conversation, chosen, goes_on))
        except BaseException:
            if new:  # nobody shall find an empty conversation in the list
                await self._desk.store.conversations.delete(conversation.id, self._user_id)
            raise
        if new:
            self._view.begun(conversation, opening)
        taken(conversation.id)
        self._hub.asked(job)
        await self._desk.store.conversations.set_head(conversation.id, self._user_id, job.id)
        self._hub.written(conversation.id)

    def check_length(self, text: str) -> None:
        """Raises InvalidRequest for what the composer would not have sent."""
        if len(text) > LONGEST_MESSAGE:
            raise InvalidRequest(self._say("A message may have {limit} characters.", limit=LONGEST_MESSAGE))

    def check_free(self) -> None:
        """Raises InvalidRequest while something of this conversation is being answered, in whichever process."""
        if self._view.shown.answering:
            raise self._another()

    def _another(self) -> InvalidRequest:
        return InvalidRequest(self._say("An answer is on its way. Wait for it, or stop it first."))

    async def _request(
        self,
        question: str,
        above: list[Exchange],
        conversation: "Conversation",
        chosen: Chosen,
        goes_on: Exchange | None,
    ) -> ChatRequest:
        backend = self._desk.service.backend
        system_prompt = self._desk.settings.system_prompt if chosen.system_prompt is None else chosen.system_prompt
        messages = await messages_for(
            question,
            answered(above),
            system_prompt,
            count=backend.count_tokens,
            room=backend.context_tokens,
            opening=goes_on.whole_answer if goes_on else "",
        )
        before = goes_on or (above[-1] if above else None)
        return ChatRequest(
            messages=messages,
            sampling=chosen.sampling or Sampling(),
            person=self._user_id,
            source="page",
            conversation_id=conversation.id,
            parent_id=before.id if before else None,
        )

    async def _create(self, question: str, chosen: Chosen) -> "Conversation":
        line = " ".join(question.strip().splitlines()[0].split())
        title = line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1].rstrip() + "…"
        return await self._desk.store.conversations.create(
            self._user_id, title=title, system_prompt=chosen.system_prompt, sampling=chosen.sampling
        )

    @property
    def _user_id(self) -> str:
        return self._view.visitor.user.id

    @property
    def _say(self) -> Language:
        return self._view.say
