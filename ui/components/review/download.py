"""GET /review/export: exactly what is filtered, as a file that is written while it is read.

Takes the parameters of the page's address, `format` and the reader's `zone`. Holds one piece of the list in memory.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from fastapi import HTTPException, Request
from fastapi.responses import StreamingResponse
from nicegui import app

from engine.types import Exchange, ExchangeFilter
from ui.access import Right
from ui.auth import Visitor
from ui.components.review.export import LINES, MEDIA_TYPES, NAMES, Format, People, csv_head
from ui.components.review.query import MOST_ALIKE, Query, reader_zone
from ui.desk import Desk

if TYPE_CHECKING:
    from storage.records import Mark

PIECE = 200  # exchanges that are read at once


def register(desk: Desk) -> None:
    @app.get("/review/export", include_in_schema=False)
    async def export(request: Request) -> StreamingResponse:
        visitor = desk.auth.visitor_of(request)
        if visitor is None or not desk.auth.allowed(visitor, Right.REVIEW):
            raise HTTPException(403)
        if request.query_params.get("format") not in LINES:
            raise HTTPException(400, "There is no such format; csv, jsonl and chat are.")
        format = cast(Format, request.query_params["format"])
        query = _query(request.query_params)
        if query.like:
            pieces = _alike(desk, query.like)
        else:
            pieces = _filtered(desk, await _filter(desk, visitor, query, request.query_params))
        await desk.store.audit.add(visitor.user.name, "review.export", format, query.address())
        name = f"qdesk-{datetime.now(UTC):%Y%m%d-%H%M}.{NAMES[format]}"
        return StreamingResponse(
            _lines(desk, visitor, pieces, format),
            media_type=MEDIA_TYPES[format],
            headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
        )


def _query(parameters: Mapping[str, str]) -> Query:
    """The list that is asked for. What makes no sense is refused: a file must not hold more than was meant."""
    query, ignored = Query.parse(parameters)
    if ignored:
        raise HTTPException(400, f"Not understood: {', '.join(ignored)}.")
    return query.closed()


async def _filter(desk: Desk, visitor: Visitor, query: Query, parameters: Mapping[str, str]) -> ExchangeFilter:
    account = await desk.store.users.by_name(query.person) if query.person else None
    try:
        asker = query.asker(account.id if account else None)
    except LookupError:
        raise HTTPException(404, "Nobody here is called so.") from None
    return query.filter(asker, visitor.user.id, datetime.now(UTC), reader_zone(parameters.get("zone"), None))


Pieces = AsyncGenerator[list[Exchange], None]


async def _filtered(desk: Desk, filter: ExchangeFilter) -> Pieces:
    cursor = None
    while True:
        page = await desk.store.exchanges.read(filter, limit=PIECE, cursor=cursor)
        yield page.items
        if (cursor := page.next) is None:
            return


async def _alike(desk: Desk, id: str) -> Pieces:
    """As many as the page lists."""
    yield await desk.store.exchanges.read_like(id, limit=MOST_ALIKE)


async def _lines(desk: Desk, visitor: Visitor, pieces: Pieces, format: Format) -> AsyncIterator[str]:
    """The file, a piece of the list at a time. Ends early for somebody who loses the right to read on."""
    people = {user.id: user.name for user in await desk.store.users.list()}
    if format == "csv":
        yield csv_head()
    async with aclosing(pieces):
        async for exchanges in pieces:
            if not desk.auth.allowed(visitor, Right.REVIEW):
                return
            marks = await desk.store.reviews.marks(exchange.id for exchange in exchanges)
            yield await asyncio.to_thread(_written, exchanges, marks, people, format)


def _written(exchanges: list[Exchange], marks: "Mapping[str, Mark]", people: People, format: Format) -> str:
    return "".join(LINES[format](exchange, marks.get(exchange.id), people) for exchange in exchanges)
