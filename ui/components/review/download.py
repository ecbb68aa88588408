"""GET /review/export: exactly what is filtered, as a file that is written while it is read.

Takes the parameters of the page's address, `format` and the reader's `zone`. Holds one piece of the list in memory.
"""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import cast

from fastapi import HTTPException, Request
from fastapi.responses import StreamingResponse
from nicegui import app

from engine.types import ExchangeFilter
from ui.auth import Visitor
from ui.components.review.export import LINES, MEDIA_TYPES, Format, csv_head
from ui.components.review.query import Query, reader_zone
from ui.desk import Desk

PIECE = 200  # exchanges that are listed at once


def register(desk: Desk) -> None:
    @app.get("/review/export", include_in_schema=False)
    async def export(request: Request) -> StreamingResponse:
        visitor = desk.auth.visitor_of(request)
        if visitor is None or not desk.auth.allowed(visitor, "reviewer", "admin"):
            raise HTTPException(403)
        if request.query_params.get("format") not in LINES:
            raise HTTPException(400, "There is no such format; csv and jsonl are.")
        format = cast(Format, request.query_params["format"])
        filter = await _filter(desk, request.query_params)
        await desk.store.audit.add(visitor.user.name, "review.export", format, _query(request.query_params).address())
        name = f"qdesk-{datetime.now(UTC):%Y%m%d-%H%M}.{format}"
        return StreamingResponse(
            _lines(desk, visitor, filter, format),
            media_type=MEDIA_TYPES[format],
            headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"},
        )


def _query(parameters: Mapping[str, str]) -> Query:
    """The list that is asked for. What makes no sense is refused: a file must not hold more than was meant."""
    query, ignored = Query.parse(parameters)
    if ignored:
        raise HTTPException(400, f"Not understood: {', '.join(ignored)}.")
    return query.closed()


async def _filter(desk: Desk, parameters: Mapping[str, str]) -> ExchangeFilter:
    query = _query(parameters)
    account = await desk.store.users.by_name(query.person) if query.person else None
    try:
        asker = query.asker(account.id if account else None)
    except LookupError:
        raise HTTPException(404, "Nobody here is called so.") from None
    return query.filter(asker, datetime.now(UTC), reader_zone(parameters.get("zone"), None))


async def _lines(desk: Desk, visitor: Visitor, filter: ExchangeFilter, format: Format) -> AsyncIterator[str]:
    """The file, line by line. Ends early for somebody who loses the right to read on."""
    people = {user.id: user.name for user in await desk.store.users.list()}
    cursor, begun = None, format != "csv"
    while desk.auth.allowed(visitor, "reviewer", "admin"):
        page = await desk.store.exchanges.search(filter, limit=PIECE, cursor=cursor)
        for row in page.items:
            exchange = await desk.store.exchanges.get(row.id)
            if exchange is None:  # retention took it meanwhile
                continue
            if not begun:
                begun = True
                yield csv_head(exchange)
            yield LINES[format](exchange, people.get(exchange.person or "", ""))
        if (cursor := page.next) is None:
            return
