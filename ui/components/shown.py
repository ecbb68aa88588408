"""The conversation that one page shows: its branch of the tree, and the answers on it that are still being written.

Reads from store and service and sends to the Thread; what people do is `chat_view`'s part.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from nicegui import background_tasks

from engine.job import Job
from engine.types import Exchange
from ui.components.answer import RunningAnswer
from ui.components.markdown import render
from ui.components.preferences import Chosen
from ui.components.thread import Thread, Turn, View
from ui.components.turns import beginning, branch, ends, first_read, turn
from ui.desk import Desk
from ui.elsewhere import followed
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import Conversation

LOOK_AGAIN_S = 5.0  # where the log is behind, because the database is in trouble


class Shown:
    def __init__(
        self, desk: Desk, say: Language, thread: Thread, opening: Callable[[], None], changed: Callable[[], None]
    ) -> None:
        """`opening` is called before another conversation or branch is shown, `changed` when an answer has started or
        ended: what people act on has to be ready when they see that they can.
        """
        self.conversation: Conversation | None = None  # None: a new one, which is made with its first question
        self.chosen = Chosen()
        self.path: list[Exchange] = []  # the branch that is shown
        self.running: dict[str, RunningAnswer] = {}
        self._desk, self._say, self._thread = desk, say, thread
        self._opening, self._changed = opening, changed
        self.tree: dict[str, Exchange] = {}
        self._following: set[asyncio.Task[None]] = set()
        self.opened = 0  # how often something was opened: what an earlier opening still brings is dropped
        self._settled = 0  # which of these is the last that came to its end
        self.closed = False  # the page is gone: nothing is shown on it or followed for it any more

    def close(self) -> None:
        self.closed = True
        self.opened += 1  # what is being opened finds that it came too late
        self.stop_following()
        self._opening = self._changed = _unheard

    @property
    def id(self) -> str:
        return self.conversation.id if self.conversation else ""

    @property
    def ids(self) -> list[str]:
        """The ids of all exchanges of the conversation, on whichever branch."""
        return list(self.tree)

    async def open(self, conversation_id: str, user_id: str, *, push: bool = False) -> bool:
        """Show a conversation; somebody else's is one that does not exist. False: another was opened meanwhile, or
        the page is gone.
        """
        if self.closed:
            return False
        self.opened += 1
        opening, store, before = self.opened, self._desk.store.conversations, self._jobs(conversation_id)
        try:
            conversation = await store.get(conversation_id, user_id) if conversation_id else None
            exchanges = await store.exchanges(conversation.id, user_id) if conversation else []
            chosen = await self._chosen(conversation, user_id)
        except BaseException:
            self._settled = max(self._settled, opening)
            raise
        if opening != self.opened:
            return False
        self.conversation = conversation
        self.chosen = chosen
        self.tree = {exchange.id: exchange for exchange in exchanges}
        return await self.show(push=push, missing=bool(conversation_id and not conversation), before=before)

    async def _chosen(self, conversation: "Conversation | None", user_id: str) -> Chosen:
        """The conversation's settings; a new one has what the person chose for new ones."""
        if conversation:
            return Chosen(conversation.system_prompt, conversation.sampling)
        return Chosen(*await self._desk.store.users.defaults(user_id))

    async def show(self, *, push: bool = False, missing: bool = False, before: list[Job] | None = None) -> bool:
        """Send the whole branch, and follow what is being answered on it.

        `before` are the jobs there were when the store was asked: one that has ended since is not as it was read.
        """
        if self.closed:
            return False
        self.opened += 1
        opening, known = self.opened, list(before or [])
        self.stop_following()
        while True:
            jobs = self.jobs()
            known += jobs
            if self.conversation:
                self.tree |= {job.id: job.exchange() for job in known}
            self.path = branch(self.tree, self.conversation.head_id if self.conversation else None)
            turns = await asyncio.to_thread(self._turns)
            if opening != self.opened:
                return False
            if jobs == self.jobs():  # else a question was asked or answered meanwhile
                break
        self._settled = opening
        for job in jobs:
            if job.id in turns:
                turns[job.id] = self._run(job).turn()
        title = self.conversation.title if self.conversation else ""
        self._opening()
        self._thread.load(
            View(
                id=self.id,
                title=title,
                turns=list(turns.values()),
                first_read=first_read(self.path),
                replace=not push,
                missing=missing,
            )
        )
        for answer in self.running.values():
            self._follow(answer)
        for one in self.elsewhere:
            self._keep(background_tasks.create(self._follow_elsewhere(one, opening), name=f"follow {one.id} elsewhere"))
        if self._unfollowed and not self.elsewhere:
            self._keep(background_tasks.create(self._look_again(opening), name="await a row's end"))
        return True

    async def _follow_elsewhere(self, exchange: Exchange, opening: int) -> None:
        """Show an answer that another process gives, as the log says, and at its end all of the conversation anew."""
        async with aclosing(followed(self._desk, exchange)) as rows:
            async for row in rows:
                html = await asyncio.to_thread(render, row.whole_answer)
                if opening != self.opened or not self.conversation:
                    return
                if row.status.final:
                    self._reopen(self.conversation)
                    return
                self.take_over(row)
                self._thread.put(turn(row, self.tree, self._say, html))

    async def _look_again(self, opening: int) -> None:
        """An answer has ended, and the database could not yet take its last row."""
        await asyncio.sleep(LOOK_AGAIN_S)
        if opening == self.opened and self.conversation:
            self._reopen(self.conversation)

    def _reopen(self, conversation: "Conversation") -> None:
        """In a task of its own, since opening ends those that follow."""
        background_tasks.create(self.open(conversation.id, conversation.user_id), name="reopen")

    def join(self, job: Job) -> None:
        """A question of this conversation was asked, on this page or on another one: show it and follow."""
        assert self.conversation
        self.conversation = replace(self.conversation, head_id=job.id)
        if self._settled != self.opened:
            return  # what is being opened finds the job by itself
        before = [exchange.id for exchange in self.path]
        self.tree[job.id] = job.exchange()
        path = branch(self.tree, job.id)
        if before != [exchange.id for exchange in path[:-1]]:  # another version: the branch is another one now
            background_tasks.create(self.show(), name="show another branch")
            return
        self.path = path
        answer = self._run(job)
        self._thread.put(answer.turn())
        self._thread.read_from(first_read(path))
        self._follow(answer)

    def take_over(self, exchange: Exchange) -> None:
        """This is how one of the exchanges stands now."""
        self.tree[exchange.id] = exchange
        self.path = [exchange if one.id == exchange.id else one for one in self.path]

    async def show_head(self, exchange_id: str) -> None:
        """Show the branch that ends with this exchange."""
        if self.conversation:
            self.conversation = replace(self.conversation, head_id=exchange_id)
            await self.show()

    def jobs(self) -> list[Job]:
        """What of this conversation is being answered, on whichever branch."""
        return self._jobs(self.id)

    @property
    def elsewhere(self) -> list[Exchange]:
        """What of the branch that is shown another process answers."""
        return self._unfollowed if self._desk.store.cluster else []

    @property
    def _unfollowed(self) -> list[Exchange]:
        """What of the branch that is shown has not ended, as far as the log knows, and is answered by no job here."""
        return [one for one in self.path if not one.status.final and one.id not in self.running]

    @property
    def answering(self) -> bool:
        """Whether a question has to wait: for a branch that is answered here, or the one shown that is elsewhere."""
        return bool(self.jobs() or self.elsewhere)

    @property
    def busy(self) -> bool:
        """Whether something of the branch that is shown is being answered, in whichever process."""
        return bool(self.running or self.elsewhere)

    def find(self, exchange_id: object) -> Exchange | None:
        """An exchange of this conversation, on whichever branch."""
        return self.tree.get(exchange_id) if isinstance(exchange_id, str) else None

    def above(self, exchange: Exchange) -> list[Exchange]:
        """The branch above the turn of this exchange."""
        parent = self.tree.get(beginning(self.tree, exchange).parent_id or "")
        return branch(self.tree, parent.id) if parent else []

    def catch_up(self, *, all: bool = False) -> None:
        """The browser may have missed something: send running answers whole."""
        for answer in self.running.values():
            if all or not answer.all_sent:
                answer.catch_up()

    def stop_following(self) -> None:
        for task in self._following:
            task.cancel()
        self._following.clear()
        self.running.clear()

    def _turns(self) -> dict[str, Turn]:
        return {one.id: turn(one, self.tree, self._say, render(one.whole_answer)) for one in ends(self.path)}

    def _jobs(self, conversation_id: str) -> list[Job]:
        jobs = self._desk.service.jobs.values()
        return [job for job in jobs if conversation_id and job.request.conversation_id == conversation_id]

    def _run(self, job: Job) -> RunningAnswer:
        answer = RunningAnswer(job, self._thread, self._frame)
        self.running[job.id] = answer
        return answer

    def _frame(self, job: Job) -> Turn:
        """The turn of a running job, without its answer."""
        frame = turn(job.exchange(), self.tree, self._say, None)
        frame["position"] = job.position
        return frame

    def _follow(self, answer: RunningAnswer) -> None:
        self._keep(background_tasks.create(self._to_its_end(answer), name=f"show answer {answer.job.id}"))
        self._changed()

    def _keep(self, task: asyncio.Task[None]) -> None:
        """Until it has ended, or something else is shown."""
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _to_its_end(self, answer: RunningAnswer) -> None:
        """Show an answer until it has ended, then how it ended."""
        await answer.follow()
        id, exchange = answer.job.id, answer.job.exchange()
        self.take_over(exchange)
        self.running.pop(id, None)
        html = None if answer.all_sent else await asyncio.to_thread(render, exchange.whole_answer)
        self._changed()
        self._thread.put(turn(exchange, self.tree, self._say, html))


def _unheard() -> None:
    """Instead of telling a page that is gone."""
