"""GET /account/export: what the server holds of the person who asks, as JSON lines; each line says what it is.

Account, sessions, names of keys, templates, ratings, and what their programs asked. Conversations are exported by the
chat page. Never holds a password, a token or a key, nor anything of anybody else.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fastapi import HTTPException
from nicegui import app
from starlette.requests import Request
from starlette.responses import StreamingResponse

from engine.types import ExchangeFilter
from ui.auth import Visitor
from ui.desk import Desk

if TYPE_CHECKING:
    from storage.records import ApiKey, Session, Template, User

PIECE = 200  # exchanges that are listed at once


def register(desk: Desk) -> None:
    @app.get("/account/export", include_in_schema=False)
    async def export(request: Request) -> StreamingResponse:
        visitor = desk.auth.visitor_of(request)
        if visitor is None or not desk.auth.allowed(visitor):
            raise HTTPException(403)
        name = f"qdesk-account-{datetime.now(UTC):%Y%m%d-%H%M}.jsonl"
        return StreamingResponse(
            _lines(desk, visitor),
            media_type="application/jsonl",
            headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
        )


async def _lines(desk: Desk, visitor: Visitor) -> AsyncIterator[str]:
    """Line by line; ends early where the session ends meanwhile."""
    async for kind, facts in _facts(desk, visitor.user):
        if not desk.auth.allowed(visitor):
            return
        yield json.dumps({"type": kind, **facts}, ensure_ascii=False, default=str) + "\n"


async def _facts(desk: Desk, user: "User") -> AsyncIterator[tuple[str, dict[str, Any]]]:
    store = desk.store
    prompt, sampling = await store.users.defaults(user.id)
    chosen = {"default_system_prompt": prompt, "default_sampling": asdict(sampling) if sampling else None}
    yield "account", asdict(user) | chosen
    for session in await store.sessions.list(user.id):
        yield "session", _session(session)
    for key in await store.api_keys.list(user.id):
        yield "api_key", _key(key)
    for template in await store.templates.list(user.id):
        if template.user_id == user.id:
            yield "template", _template(template)
    for given in await store.feedback.list(user.id):
        yield "rating", {name: getattr(given, name) for name in ("exchange_id", "rating", "reason", "comment", "at")}
    async for exchange in _asked_by_programs(desk, user):
        yield "request", exchange


async def _asked_by_programs(desk: Desk, user: "User") -> AsyncIterator[dict[str, Any]]:
    filter, cursor = ExchangeFilter(person=user.id, source="api"), None
    while True:
        page = await desk.store.exchanges.search(filter, limit=PIECE, cursor=cursor)
        for row in page.items:
            exchange = await desk.store.exchanges.get(row.id)
            if exchange is not None:  # else retention took it meanwhile
                yield asdict(exchange)
        if (cursor := page.next) is None:
            return


def _session(session: "Session") -> dict[str, Any]:
    return {name: getattr(session, name) for name in ("agent", "created_at", "last_seen_at", "expires_at")}


def _key(key: "ApiKey") -> dict[str, Any]:
    return {name: getattr(key, name) for name in ("name", "prefix", "created_at", "last_used_at")}


def _template(template: "Template") -> dict[str, Any]:
    return {name: getattr(template, name) for name in ("name", "text", "shared", "updated_at")}
