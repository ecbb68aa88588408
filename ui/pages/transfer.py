"""Files of one's own conversations, for whoever is signed in; somebody else's is one that does not exist.

GET /conversations/export                   all of them, as JSON lines
GET /conversations/{id}/export?format=md    one; or json
POST /conversations/import                  the file is the body
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from urllib.parse import quote

from fastapi import HTTPException, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from nicegui import app

from ui.auth import Visitor
from ui.desk import Desk
from ui.theme import say_for
from ui.transfer import ConversationPart, NotRead, exchanges_of, read, to_json, to_markdown

MAX_FILE_BYTES = 20 * 1024**2
PIECE = 100  # conversations that are listed at once

Changed = Callable[[str], Awaitable[None]]  # told the id of the person whose list has changed


def register(desk: Desk, changed: Changed) -> None:
    store, room = desk.store.conversations, asyncio.Semaphore(1)  # a file may take hundreds of MB while it is read

    @app.get("/conversations/export", include_in_schema=False)
    async def export_all(request: Request) -> StreamingResponse:
        visitor = _visitor(desk, request)
        name = f"qdesk-conversations-{datetime.now(UTC):%Y%m%d}.jsonl"
        return StreamingResponse(
            _lines(desk, visitor), media_type="application/x-ndjson; charset=utf-8", headers=_attached(name)
        )

    @app.get("/conversations/{id}/export", include_in_schema=False)
    async def export(request: Request, id: str, format: str = "md") -> Response:
        visitor = _visitor(desk, request)
        if format not in ("md", "json"):
            raise HTTPException(400, "There is no such format; md and json are.")
        conversation = await store.get(id, visitor.user.id)
        if conversation is None:
            raise HTTPException(404, "There is no such conversation.")
        exchanges = await store.exchanges(id, visitor.user.id)
        if format == "json":
            body, kind = to_json(conversation, exchanges, indent=2), "application/json"
        else:
            body, kind = to_markdown(conversation, exchanges, say_for(visitor, request)), "text/markdown"
        name = re.sub(r"[^\w -]+", "_", conversation.title).strip()[:60] or "conversation"
        return Response(body, media_type=f"{kind}; charset=utf-8", headers=_attached(f"{name}.{format}"))

    @app.post("/conversations/import", include_in_schema=False)
    async def bring(request: Request) -> Response:
        """`x-form-token` is that of the page."""
        visitor = _visitor(desk, request)
        say = say_for(visitor, request)
        if not desk.auth.form_fits(visitor.session_id, request.headers.get("x-form-token", "")):
            raise HTTPException(403)
        try:
            file = await _body(request)
            async with room:
                parts = await asyncio.to_thread(read, file, say)
        except NotRead as error:
            return JSONResponse({"imported": 0, "errors": error.sentences}, 400)
        except _TooLarge:
            limit = MAX_FILE_BYTES // 1024**2
            return JSONResponse({"imported": 0, "errors": [say("A file may have {n} MB.", n=limit)]}, 413)
        for part in parts:
            await _take_in(desk, visitor, part)
        await changed(visitor.user.id)
        return JSONResponse({"imported": len(parts), "errors": []})


async def _take_in(desk: Desk, visitor: Visitor, part: ConversationPart) -> None:
    now = datetime.now(UTC)
    exchanges, head_id = exchanges_of(part, now)
    await desk.store.conversations.take_in(
        visitor.user.id,
        exchanges,
        title=" ".join(part.title.split()),
        updated_at=min(part.updated_at or now, now),
        system_prompt=part.system_prompt,
        sampling=part.sampling.sampling() if part.sampling else None,
        folder=" ".join(part.folder.split()),
        pinned=part.pinned,
        archived=part.archived,
        head_id=head_id,
    )


async def _lines(desk: Desk, visitor: Visitor) -> AsyncIterator[str]:
    """All of the person's conversations, one a line. Ends early when the session does."""
    cursor, store = None, desk.store.conversations
    while desk.auth.allowed(visitor):
        page = await store.list(visitor.user.id, limit=PIECE, cursor=cursor)
        for conversation in page.items:
            if exchanges := await store.exchanges(conversation.id, visitor.user.id):
                yield to_json(conversation, exchanges) + "\n"
        if (cursor := page.next) is None:
            return


class _TooLarge(Exception):
    pass


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FILE_BYTES:
            raise _TooLarge
    return bytes(body)


def _visitor(desk: Desk, request: Request) -> Visitor:
    visitor = desk.auth.visitor_of(request)
    if visitor is None or not desk.auth.allowed(visitor):
        raise HTTPException(403)
    return visitor


def _attached(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name)}", "Cache-Control": "no-store"}
