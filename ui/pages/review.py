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

from fastapi import HTTPException
from loguru import logger
from nicegui import ui

from engine.types import Exchange, ExchangeFilter
from ui.auth import Visitor
from ui.components.markdown import render
from ui.components.review import download
from ui.components.review.conversation import View, said, view
from ui.components.review.inbox import Inbox, who
from ui.components.review.query import Query, reader_zone
from ui.desk import Desk
from ui.i18n import Language
from ui.static_files import stylesheet
from ui.theme import heading, page_visitor, prepare, say_for, top_bar

if TYPE_CHECKING:
    from storage.records import ExchangeRow

PAGE = 50  # exchanges that are listed at once


def register(desk: Desk) -> None:
    download.register(desk)

    @ui.page("/review")
    async def review() -> None:
        visitor = page_visitor()
        if not desk.auth.allowed(visitor, "reviewer", "admin"):
            raise HTTPException(403)
        users = await desk.store.users.list()
        say = say_for(visitor, ui.context.client.request)
        prepare(desk, visitor, say("Review"))
        ui.add_head_html(stylesheet("answer.css") + stylesheet("review.css"))
        top_bar(desk, visitor, say, "/review")
        with ui.element("div").classes("review-page"):
            heading(say("Review"), 1).classes("visually-hidden")
            Review(desk, visitor, say, sorted((user.name for user in users), key=str.casefold))


class Review:
    """One reviewer's open page: what is listed, and how it goes on."""

    def __init__(self, desk: Desk, visitor: Visitor, say: Language, people: list[str]) -> None:
        self.desk, self.visitor, self.say = desk, visitor, say
        self._zone: tzinfo = UTC
        self._filter: ExchangeFilter | None = None
        self._next: str | None = None
        self._newest = 0  # the number of the newest question for a list; answers to older ones are dropped
        self.inbox = Inbox(
            say,
            people,
            {"visit": self.visit, "search": self.search, "more": self.more, "open": self.open, "sent": self.sent},
        )

    async def visit(self, args: Mapping[str, object]) -> None:
        self._zone = reader_zone(args.get("zone"), args.get("offset"))
        await self.search(args)

    async def search(self, args: Mapping[str, object]) -> None:
        n = self._newest = _number(args)
        fields = args.get("fields")
        query, ignored = Query.parse(fields if isinstance(fields, dict) else {})
        if self._allowed():
            with self._excused(partial(self.inbox.show_trouble, n)):
                await self._list(n, query, ignored)
        else:
            self.inbox.show_trouble(n, self.say("You may no longer read the log."))

    async def _list(self, n: int, query: Query, ignored: tuple[str, ...]) -> None:
        await self._audit("review.search", detail=query.closed().address())
        account = await self.desk.store.users.by_name(query.person) if query.person else None
        try:
            asker = query.asker(account.id if account else None)
        except LookupError:
            notice = self.say("Nobody here is called {name}.", name=query.person)
            return self._listed(n, query, None, [], None, notice)
        filter = query.filter(asker, datetime.now(UTC), self._zone)
        page = await self.desk.store.exchanges.search(filter, limit=PAGE)
        return self._listed(n, query, filter, page.items, page.next, self._left_out(ignored))

    def _listed(
        self,
        n: int,
        query: Query,
        filter: ExchangeFilter | None,
        rows: "list[ExchangeRow]",
        next: str | None,
        notice: str,
    ) -> None:
        """Show the list and remember how it goes on, unless another one was asked for meanwhile."""
        if n == self._newest:
            self._filter, self._next = filter, next
            self.inbox.show_list(n, query, rows, more=next is not None, notice=notice)

    def _left_out(self, ignored: tuple[str, ...]) -> str:
        if not ignored:
            return ""
        return self.say("Part of the address was not understood and is left out: {names}", names=", ".join(ignored))

    async def more(self, args: Mapping[str, object]) -> None:
        n, filter, cursor = _number(args), self._filter, self._next
        if filter is None or cursor is None or n != self._newest or not self._allowed():
            return
        with self._excused(partial(self.inbox.show_trouble, n)):
            page = await self.desk.store.exchanges.search(filter, limit=PAGE, cursor=cursor)
            if n == self._newest and cursor == self._next:
                self._next = page.next
                self.inbox.show_more(n, page.items, more=page.next is not None)

    async def open(self, args: Mapping[str, object]) -> None:
        missing = partial(self.inbox.show_missing, _number(args))
        with self._excused(missing):
            exchange = await self._read(args)
            if exchange is None:
                missing(self.say("This exchange is not in the log."))
            else:
                self.inbox.show_opened(_number(args), await self._view(exchange))

    async def sent(self, args: Mapping[str, object]) -> None:
        """The exact messages, which need not be what the conversation shows."""
        exchange = await self._read(args)
        if exchange is not None:
            self.inbox.show_sent(exchange.id, said(exchange.messages, self.say))

    async def _read(self, args: Mapping[str, object]) -> Exchange | None:
        """The exchange that is asked for, once it is written down that this reviewer has asked for it."""
        id = args.get("id")
        if not isinstance(id, str) or not self._allowed():
            return None
        exchange = await self.desk.store.exchanges.get(id[:64])
        if exchange is not None:
            await self._audit("review.open", target=exchange.id)
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

    def _allowed(self) -> bool:
        return self.desk.auth.allowed(self.visitor, "reviewer", "admin")

    async def _audit(self, action: str, *, target: str = "", detail: str = "") -> None:
        await self.desk.store.audit.add(self.visitor.user.name, action, target, detail)


def _number(args: Mapping[str, object]) -> int:
    n = args.get("n")
    return n if isinstance(n, int) else 0
