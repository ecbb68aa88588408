"""/review: every logged exchange, for reviewers and administrators. Who searched and opened what is written down.

Joins the store to the inbox: checks who asks, parses what the browser sends, writes the audit trail before anything is
shown. Knows nothing of how it looks (ui/components/review).
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import TYPE_CHECKING

from loguru import logger
from nicegui import ui

from engine.backends import KnowsTokens
from engine.errors import EngineError
from engine.types import Exchange, ExchangeFilter
from ui.components.markdown import render
from ui.components.review.choices import Choice, choices
from ui.components.review.conversation import Part, View, parts, said, view
from ui.components.review.inbox import Inbox, who
from ui.components.review.query import MOST_ALIKE, Query, reader_zone
from ui.desk import Desk
from ui.pages.review.reader import Reader, text_of
from ui.pages.review.work import Working
from ui.theme import BUILT_WITHIN_S, heading, page_visitor, prepare, say_for, styles, top_bar

if TYPE_CHECKING:
    from storage.records import ExchangeRow, User

PAGE = 50  # exchanges that are listed at once


def register(desk: Desk) -> None:
    @ui.page("/review", response_timeout=BUILT_WITHIN_S)
    async def review() -> None:
        visitor = page_visitor()
        people = await desk.store.users.list()
        store = desk.store
        models, labels = await store.exchanges.models(), await store.reviews.labels()
        say = say_for(visitor, ui.context.client.request)
        prepare(desk, visitor, say("Review"))
        styles("answer.css", "review.css")
        top_bar(desk, visitor, say, "/review")
        with ui.element("div").classes("review-page"):
            heading(say("Review"), 1).classes("visually-hidden")
            names = sorted((user.name for user in people), key=str.casefold)
            Review(Reader(desk, visitor, say), people, choices(say, names, models, labels))


class Review:
    """One reviewer's open page: what is listed, and how it goes on."""

    def __init__(self, reader: Reader, people: "list[User]", choices: list[Choice]) -> None:
        self.reader, self.desk, self.say = reader, reader.desk, reader.say
        self._zone: tzinfo = UTC
        self._filter: ExchangeFilter | None = None
        self._next: str | None = None
        self._newest = 0  # the number of the newest question for a list; answers to older ones are dropped
        self.inbox = Inbox(
            self.say,
            choices,
            {"search": self.search, "more": self.more, "open": self.open, "sent": self.sent},
        )
        if reader.may("review.retention"):
            self.inbox.props["retention"] = f"{self.desk.settings.base_path}/review/retention"
        self.inbox.names = {user.id: user.name for user in people}
        reviewers = {user.id: user.name for user in people if user.role != "staff" and not user.disabled}
        self.working = Working(reader, self.inbox, reviewers)

    async def search(self, args: Mapping[str, object]) -> None:
        n = _number(args)
        if n < self._newest:  # sent as the page came up, and come late: before there is a socket, a page keeps no order
            return
        self._newest, self._zone = n, reader_zone(args.get("zone"), args.get("offset"))
        fields = args.get("fields")
        query, ignored = Query.parse(fields if isinstance(fields, dict) else {})
        if self.reader.allowed():
            with self._excused(partial(self.inbox.show_trouble, n)):
                await self._list(n, query, ignored)
        else:
            self.inbox.show_trouble(n, self.say("You may no longer read the log."))

    async def _list(self, n: int, query: Query, ignored: tuple[str, ...]) -> None:
        await self.reader.audit("review.search", detail=query.closed().address())
        self.inbox.show_counts(await self.desk.store.reviews.counts())
        if query.like:
            rows = await self.desk.store.exchanges.like(query.like, limit=MOST_ALIKE)
            return await self._listed(n, query, None, rows, None, self._left_out(ignored))
        account = await self.desk.store.users.by_name(query.person) if query.person else None
        try:
            asker = query.asker(account.id if account else None)
        except LookupError:
            notice = self.say("Nobody here is called {name}.", name=query.person)
            return await self._listed(n, query, None, [], None, notice)
        filter = query.filter(asker, self.reader.id, datetime.now(UTC), self._zone)
        page = await self.desk.store.exchanges.search(filter, limit=PAGE)
        return await self._listed(n, query, filter, page.items, page.next, self._left_out(ignored))

    async def _listed(
        self,
        n: int,
        query: Query,
        filter: ExchangeFilter | None,
        rows: "list[ExchangeRow]",
        next: str | None,
        notice: str,
    ) -> None:
        """Show the list and remember how it goes on, unless another one was asked for meanwhile."""
        marks = await self.desk.store.reviews.marks(row.id for row in rows)
        if n == self._newest:
            self._filter, self._next = filter, next
            self.inbox.show_list(n, query, rows, marks, more=next is not None, notice=notice)

    def _left_out(self, ignored: tuple[str, ...]) -> str:
        if not ignored:
            return ""
        return self.say("Part of the address was not understood and is left out: {names}", names=", ".join(ignored))

    async def more(self, args: Mapping[str, object]) -> None:
        n, filter, cursor = _number(args), self._filter, self._next
        if filter is None or cursor is None or n != self._newest or not self.reader.allowed():
            return
        with self._excused(partial(self.inbox.show_trouble, n)):
            page = await self.desk.store.exchanges.search(filter, limit=PAGE, cursor=cursor)
            marks = await self.desk.store.reviews.marks(row.id for row in page.items)
            if n == self._newest and cursor == self._next:
                self._next = page.next
                self.inbox.show_more(n, page.items, marks, more=page.next is not None)

    async def open(self, args: Mapping[str, object]) -> None:
        missing = partial(self.inbox.show_missing, _number(args))
        with self._excused(missing):
            exchange = await self._read(args)
            if exchange is None:
                missing(self.say("This exchange is not in the log."))
            else:  # both at once: a bar that came later would come over what a reader is about to press
                view, work = await self._view(exchange), await self.working.read(exchange)
                self.inbox.show_opened(_number(args), view)
                self.working.element.show(*work)

    async def sent(self, args: Mapping[str, object]) -> None:
        """The exact messages and the prompt, which need not be what the conversation shows."""
        with self._excused(lambda sentence: self.inbox.show_sent(text_of(args, "id"), [], [], sentence)):
            exchange = await self._read(args)
            if exchange is not None:
                prompt, why_not = await self._prompt(exchange)
                self.inbox.show_sent(exchange.id, said(exchange.messages, self.say), prompt, why_not)

    async def _prompt(self, exchange: Exchange) -> tuple[list[Part], str]:
        """The prompt that the model's template made of the messages; else why that cannot be shown."""
        backend = self.desk.service.backend
        if not isinstance(backend, KnowsTokens):
            return [], self.say("The model runs at another server, which puts the messages into its template.")
        if exchange.model != backend.model:
            return [], self.say("The model that answered runs no more, and its template is not here.")
        try:
            return parts(await asyncio.to_thread(backend.pieces, exchange.messages)), ""
        except EngineError:
            return [], self.say("The model is not ready, so its template is not here.")
        except Exception:
            logger.exception("the prompt of an exchange could not be made")
            return [], self.say("The model's template could not be used on these messages.")

    async def _read(self, args: Mapping[str, object]) -> Exchange | None:
        """The exchange that is asked for, once it is written down that this reviewer has asked for it."""
        if not self.reader.allowed():
            return None
        exchange = await self.desk.store.exchanges.get(text_of(args, "id"))
        if exchange is not None:
            await self.reader.audit("review.open", target=exchange.id)
        return exchange

    async def _view(self, exchange: Exchange) -> View:
        store, around = self.desk.store, [exchange]
        if exchange.conversation_id:
            around = await store.exchanges.conversation(exchange.conversation_id)
        person = await store.users.get(exchange.person) if exchange.person else None
        name = who(person.name if person else "", self.say)
        # Rendering a long conversation takes longer than the loop can spare.
        return await asyncio.to_thread(view, exchange, around, name, self.say, render)

    @contextmanager
    def _excused(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Whatever the store's trouble is, the reviewer gets a sentence and the log the rest."""
        try:
            yield
        except Exception:
            logger.exception("the log could not be read")
            tell(self.say("The log could not be read. Try again in a moment."))


def _number(args: Mapping[str, object]) -> int:
    n = args.get("n")
    return n if isinstance(n, int) else 0
