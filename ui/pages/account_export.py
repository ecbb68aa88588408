"""GET /account/export: what the server holds of the person who asks, as JSON lines; each line says what it is.

Account, who they are at a provider, sessions, names of keys, templates, ratings, and what their programs asked.
Conversations are exported by the chat page. Never holds a password, a token or a key, nor anything of anybody else:
what a reviewer ran again is another person's question, and is left out.

GET /admin/people/export?person=ID: the same for an administrator who is asked for it, with the conversations and all
that the log has of this person, deleted ones too. Without what reviewers wrote of it, and what was written of the
person: lines of the audit trail, holds, counts by day. Audited.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from fastapi import HTTPException
from nicegui import app
from starlette.requests import Request
from starlette.responses import StreamingResponse

from engine.types import ExchangeFilter
from ui.access import Right
from ui.desk import Desk

if TYPE_CHECKING:
    from storage.records import ApiKey, Page, Session, Template, User

T = TypeVar("T")
PIECE = 200  # exchanges that are read at once


def register(desk: Desk) -> None:
    @app.get("/account/export", include_in_schema=False)
    async def export(request: Request) -> StreamingResponse:
        visitor = desk.auth.visitor_of(request)
        if visitor is None or not desk.auth.allowed(visitor):
            raise HTTPException(403)
        return _file(desk, visitor.user, lambda: desk.auth.allowed(visitor), whole=False)

    @app.get("/admin/people/export", include_in_schema=False)
    async def export_of(request: Request) -> StreamingResponse:
        visitor = desk.auth.visitor_of(request)
        if visitor is None or not desk.auth.allowed(visitor, Right.ADMINISTER):
            raise HTTPException(403)
        user = await desk.store.users.get(request.query_params.get("person", ""))
        if user is None:
            raise HTTPException(404, "There is no such account.")
        await desk.store.audit.add(visitor.user.name, "user.export", user.name)
        return _file(desk, user, lambda: desk.auth.allowed(visitor, Right.ADMINISTER), whole=True)


def _file(desk: Desk, user: "User", may: Callable[[], bool], *, whole: bool) -> StreamingResponse:
    """A file that is written while it is read, as long as whoever reads `may`."""
    name = f"qdesk-account-{datetime.now(UTC):%Y%m%d-%H%M}.jsonl"
    return StreamingResponse(
        _lines(_facts(desk, user, whole=whole), may),
        media_type="application/jsonl",
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
    )


Facts = AsyncGenerator[tuple[str, dict[str, Any]], None]  # what each is, and its values


async def _lines(facts: Facts, may: Callable[[], bool]) -> AsyncIterator[str]:
    async with aclosing(facts):
        async for kind, values in facts:
            if not may():
                return
            yield json.dumps({"type": kind, **values}, ensure_ascii=False, default=str) + "\n"


async def _facts(desk: Desk, user: "User", *, whole: bool) -> Facts:
    store = desk.store
    prompt, sampling = await store.users.defaults(user.id)
    chosen = {"default_system_prompt": prompt, "default_sampling": asdict(sampling) if sampling else None}
    yield "account", asdict(user) | chosen
    for issuer, subject in await store.identities.of(user.id):
        yield "identity", {"issuer": issuer, "subject": subject}
    for session in await store.sessions.list(user.id):
        yield "session", _session(session)
    for key in await store.api_keys.list(user.id):
        yield "api_key", _key(key)
    for template in await store.templates.list(user.id):
        if template.user_id == user.id:
            yield "template", _template(template)
    for given in await store.feedback.list(user.id):
        yield "rating", {name: getattr(given, name) for name in ("exchange_id", "rating", "reason", "comment", "at")}
    if whole:
        async for conversation in _pieces(partial(store.conversations.list, user.id, deleted=True)):
            yield "conversation", asdict(conversation)
    asked = ExchangeFilter(person=user.id, source=None if whole else "api")
    async for exchange in _pieces(partial(store.exchanges.read, asked)):
        if exchange.source != "review":
            yield "request", asdict(exchange)


async def _pieces(read: "Callable[..., Awaitable[Page[T]]]") -> AsyncIterator[T]:
    """All that there is, a page at a time."""
    cursor = None
    while True:
        page = await read(limit=PIECE, cursor=cursor)
        for item in page.items:
            yield item
        if (cursor := page.next) is None:
            return


def _session(session: "Session") -> dict[str, Any]:
    return {name: getattr(session, name) for name in ("agent", "created_at", "last_seen_at", "expires_at")}


def _key(key: "ApiKey") -> dict[str, Any]:
    return {name: getattr(key, name) for name in ("name", "prefix", "created_at", "last_used_at")}


def _template(template: "Template") -> dict[str, Any]:
    return {name: getattr(template, name) for name in ("name", "text", "shared", "updated_at")}
