"""What people do with single turns: edit, regenerate, continue, switch versions, delete, branch into a new chat.

Belongs to one open page; what it changes is shown on all pages of the person that show the conversation.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from engine.types import Exchange
from ui.components.hub import Hub
from ui.components.sidebar import Sidebar
from ui.components.thread import Thread
from ui.components.turns import beginning, branch, neighbour, newest_under
from ui.desk import Desk
from ui.elsewhere import ended, stop

if TYPE_CHECKING:
    from ui.components.chat_view import ChatView

Fields = dict[str, Any]


class TurnActions:
    def __init__(self, view: "ChatView", desk: Desk, hub: Hub, thread: Thread, sidebar: Sidebar) -> None:
        self._view, self._desk, self._hub, self._thread, self._sidebar = view, desk, hub, thread, sidebar
        self._removed: tuple[str, str, str | None] | None = None  # the last: conversation, exchange, head before

    def handlers(self) -> list[tuple[str, Callable[[Fields], Awaitable[None]]]]:
        return [
            ("edit", self._edit),
            ("regenerate", self.regenerate),
            ("goOn", self._go_on),
            ("version", self._show_version),
            ("remove", self._remove),
            ("fork", self._fork),
        ]

    async def _edit(self, fields: Fields) -> None:
        """Ask something else in a question's place. What is being answered there is stopped, and stays as a version."""
        text, nonce = str(fields.get("text", "")), str(fields.get("nonce", ""))[:64]
        exchange = self._view.shown.find(fields.get("id"))
        if not exchange or not text.strip():
            self._thread.not_edited(nonce, self._view.say("This message is not there any more."))
            return
        asking = self._view.asking

        async def ask() -> None:
            asking.check_length(text)
            await self._end_answers(beginning(self._view.shown.tree, exchange))
            asking.check_free()
            await asking.submit(text, self._view.shown.above(exchange))

        await asking.once(nonce, ask, lambda sentence, *_: self._thread.not_edited(nonce, sentence))

    async def regenerate(self, fields: Fields) -> None:
        """Ask again what this exchange asked, with the settings as they are now: a new version beside it."""
        if exchange := self._view.shown.find(fields.get("id")):
            asking, above = self._view.asking, self._view.shown.above(exchange)
            await asking.ask_again(lambda: asking.submit(exchange.prompt, above))

    async def _go_on(self, fields: Fields) -> None:
        """Continue an answer that was cut off, with a new exchange below it that begins where it ends."""
        exchange = self._view.shown.find(fields.get("id"))
        if not exchange or not exchange.status.final or not exchange.whole_answer.strip():
            return
        above = self._view.shown.above(exchange)
        asking = self._view.asking
        await asking.ask_again(lambda: asking.submit(exchange.prompt, above, goes_on=exchange))

    async def _show_version(self, fields: Fields) -> None:
        shown = self._view.shown
        if not (exchange := shown.find(fields.get("id"))):
            return
        head = newest_under(shown.tree, exchange).id
        if await self._desk.store.conversations.set_head(shown.id, self._user_id, head, used=False):
            for view in self._hub.showing(shown.id):
                await view.shown.show_head(head)

    async def _remove(self, fields: Fields) -> None:
        """Delete a turn and what follows it from the person's pages; a running answer there is stopped before."""
        shown, say = self._view.shown, self._view.say
        if not (exchange := shown.find(fields.get("id"))):
            return
        id, first = shown.id, beginning(shown.tree, exchange)
        with self._hub.alone_with(id) as alone:
            if not alone:
                return
            if not await self._end_answers(first):
                sentence = say("The answer has not ended yet, so nothing was deleted. Try again in a moment.")
                self._view.asking.tell(sentence)
                return
            head = shown.path[-1].id if shown.path else None
            if await self._desk.store.turns.remove(id, self._user_id, first.id, neighbour(shown.tree, first)):
                self._removed = id, first.id, head
                self._sidebar.offer_undo("restoreTurn", first.id, say("Message deleted."))
                await self._show_everywhere(id)

    async def restore(self, fields: Fields) -> None:
        if not self._removed or self._removed[1] != fields.get("id"):
            return
        (id, exchange_id, head), self._removed = self._removed, None
        if await self._desk.store.turns.restore(id, self._user_id, exchange_id, head):
            await self._show_everywhere(id)

    async def _fork(self, fields: Fields) -> None:
        """A new conversation that begins as this one does, up to and with this turn."""
        shown, say = self._view.shown, self._view.say
        exchange = shown.find(fields.get("id"))
        if not exchange or not exchange.status.final or not shown.conversation:
            return
        title = say("Branch of {title}", title=shown.conversation.title)
        if fork := await self._desk.store.turns.fork(shown.id, self._user_id, exchange.id, title):
            await self._view.open(fork, push=True)
            await self._hub.list_changed(self._user_id)

    @property
    def _user_id(self) -> str:
        return self._view.visitor.user.id

    async def _end_answers(self, above: Exchange) -> bool:
        """Stop what is being answered at or below this exchange. False: another process has not ended it in time."""
        shown, all_ended = self._view.shown, True
        for job in shown.jobs():
            if above in branch(shown.tree | {job.id: job.exchange()}, job.id) or job.id == above.id:
                self._desk.service.stop_job(job)
                await job.closed()
        for exchange in shown.elsewhere:
            if above not in branch(shown.tree, exchange.id):
                continue
            if row := await ended(self._desk, exchange.id, stop):
                shown.take_over(row)
                all_ended = all_ended and row.status.final
        return all_ended

    async def _show_everywhere(self, conversation_id: str) -> None:
        for view in self._hub.showing(conversation_id):
            await view.open(conversation_id)
