"""What a reviewer does with the opened exchange: checked, kept, written to the audit trail, and shown again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from loguru import logger

from engine.types import Exchange
from ui.components.markdown import render
from ui.components.review.inbox import Inbox, marks_of, row
from ui.components.review.work import (
    Rerun,
    Work,
    WorkView,
    feedback_lines,
    hold_views,
    note_views,
    rerun,
    sampling_fields,
)
from ui.pages.review.again import Again
from ui.pages.review.reader import Reader, text_of

if TYPE_CHECKING:
    from storage.records import HoldKind

LONGEST = 50_000  # characters of a correction
LONGEST_REASON = 200
BESIDE = 50  # exchanges that are named of those at the same time

Args = Mapping[str, object]


class Working:
    """One reviewer's panel below the opened exchange."""

    def __init__(self, reader: Reader, inbox: Inbox, reviewers: Mapping[str, str]) -> None:
        """`reviewers` are those who may be assigned to: names by user id. `inbox.names` are all who ever were."""
        self.reader, self.store, self.say, self.inbox = reader, reader.desk.store, reader.say, inbox
        self._reviewers = reviewers
        self._again = Again(reader)
        with inbox:
            self.element = Work(
                self.say,
                reviewers,
                {
                    "label": self.label,
                    "unlabel": self.unlabel,
                    "note": self.note,
                    "unnote": self.unnote,
                    "correct": self.correct,
                    "assign": self.assign,
                    "done": self.done,
                    "beside": self.beside,
                    "rerun": self.rerun,
                    "stop": self.stop,
                    "hold": self.hold,
                    "release": self.release,
                },
            )

    async def read(self, exchange: Exchange) -> tuple[WorkView, list[str]]:
        """What was done with it, and the labels in use: what the element shows."""
        return await self._view(exchange), await self.store.reviews.labels()

    async def show(self, exchange: Exchange) -> None:
        self.element.show(*await self.read(exchange))

    async def label(self, args: Args) -> None:
        label = text_of(args, "label")
        await self._do(args, "review.label", lambda id: self.store.reviews.label(id, label, self.reader.id), label)

    async def unlabel(self, args: Args) -> None:
        label = text_of(args, "label")
        await self._do(args, "review.unlabel", lambda id: self.store.reviews.unlabel(id, label), label)

    async def note(self, args: Args) -> None:
        text = text_of(args, "text", LONGEST)
        await self._do(args, "review.note", lambda id: self.store.reviews.add_note(id, text, self.reader.id))

    async def unnote(self, args: Args) -> None:
        note = text_of(args, "note")
        await self._do(args, "review.unnote", lambda id: self.store.reviews.remove_note(note, self.reader.id))

    async def correct(self, args: Args) -> None:
        text = text_of(args, "text", LONGEST)
        await self._do(args, "review.correct", lambda id: self.store.reviews.correct(id, text))

    async def assign(self, args: Args) -> None:
        to = text_of(args, "to")
        name = self._reviewers.get(to, "")
        await self._do(args, "review.assign", lambda id: self.store.reviews.assign(id, to if name else None), name)

    async def done(self, args: Args) -> None:
        by = self.reader.id if args.get("done") is True else None
        action = "review.done" if by else "review.undone"
        await self._do(args, action, lambda id: self.store.reviews.set_done(id, by))

    async def hold(self, args: Args) -> None:
        await self._hold(args, "review.hold")

    async def release(self, args: Args) -> None:
        await self._hold(args, "review.release")

    async def beside(self, args: Args) -> None:
        """Other people's exchanges are named here, so it is written down like a search."""
        exchange = await self._exchange(args)
        if exchange is None:
            return
        await self.reader.audit("review.beside", target=exchange.id)
        count, rows = await self.store.exchanges.beside(exchange, limit=BESIDE)
        sentence = self.say("{n} others were waiting or running at the same time.", n=self.say.number(count))
        shown = [row(one, marks_of(None, {}), self.say) for one in rows]
        self.element.show_beside(exchange.id, sentence if count else "", shown)

    async def rerun(self, args: Args) -> None:
        exchange = await self._exchange(args)
        if exchange is None:
            return
        fields = args.get("sampling")
        job, refusal = await self._again.begin(exchange, fields if isinstance(fields, dict) else {})
        if job is None:
            self.element.trouble(refusal)
            return
        async for snapshot in self._again.follow(job):
            view = await asyncio.to_thread(rerun, snapshot, self.reader.visitor.user.name, self.say, render)
            self.element.show_rerun(exchange.id, view)

    async def stop(self, args: Args) -> None:
        if self.reader.allowed():
            self._again.stop(text_of(args, "id"))

    async def _hold(self, args: Args, action: str) -> None:
        exchange = await self._exchange(args)
        targets = _targets(exchange) if exchange else {}
        kind = next((each for each in targets if each == args.get("kind")), None)
        if exchange is None or kind is None or not self.reader.may(action):
            return
        target, reason = targets[kind], text_of(args, "reason", LONGEST_REASON).strip()
        if action == "review.hold":
            if not reason:
                self.element.trouble(self.say("Please give a reason."))
                return
            await self.store.retention.hold(kind, target, reason=reason, by=self.reader.visitor.user.name)
        else:
            await self.store.retention.release(kind, target)
        await self.reader.audit(action, target=target, detail=f"{kind}: {reason}" if reason else kind)
        await self.show(exchange)

    async def _do(self, args: Args, action: str, change: Callable[[str], Awaitable[bool]], detail: str = "") -> None:
        """Make a change, write it down, and show what has become of it."""
        exchange = await self._exchange(args)
        if exchange is None:
            return
        try:
            changed = await change(exchange.id)
            if changed:
                await self.reader.audit(action, target=exchange.id, detail=detail)
        except Exception:
            logger.exception("a review could not be kept")
            self.element.trouble(self.say("That could not be saved. Try again in a moment."))
            return
        await self.show(exchange)
        self.inbox.show_marks(exchange.id, (await self.store.reviews.marks([exchange.id])).get(exchange.id))

    async def _exchange(self, args: Args) -> Exchange | None:
        """The exchange that is meant, if it is there and this reviewer still may; else it is told."""
        exchange = await self.store.exchanges.get(text_of(args, "id")) if self.reader.allowed() else None
        if exchange is None:
            self.element.trouble(self.say("This exchange is not in the log."))
        return exchange

    async def _view(self, exchange: Exchange) -> WorkView:
        store, names = self.store, self.inbox.names
        review = await store.reviews.of(exchange.id)
        feedback = (await store.feedback.of([exchange.id])).get(exchange.id)
        targets = _targets(exchange)
        held = hold_views(await store.retention.holds(), targets)
        logged, reruns = await asyncio.to_thread(self._rendered, exchange, await store.exchanges.reruns(exchange.id))
        return WorkView(
            id=exchange.id,
            feedback=feedback_lines(feedback, self.say),
            labels=list(review.labels),
            notes=note_views(review, names, self.reader.id),
            correction=review.correction,
            assignee=review.assignee or "",
            done=names.get(review.done_by or "", "?") if review.done_at else "",
            answer=exchange.answer,
            logged=logged,
            final=exchange.status.final,
            sampling=sampling_fields(exchange),
            held=held,
            holdable=list(targets) if self.reader.may("review.hold") else [],
            reruns=reruns,
        )

    def _rendered(self, exchange: Exchange, again: list[Exchange]) -> tuple[str, list[Rerun]]:
        names = self.inbox.names
        reruns = [rerun(one, names.get(one.person or "", "?"), self.say, render) for one in again]
        return (render(exchange.answer) if exchange.answer else ""), reruns


def _targets(exchange: Exchange) -> "dict[HoldKind, str]":
    """What may be held where this exchange is open: the target's id by kind."""
    targets: dict[HoldKind, str | None] = {
        "exchange": exchange.id,
        "conversation": exchange.conversation_id,
        "person": exchange.person,
    }
    return {kind: target for kind, target in targets.items() if target}
