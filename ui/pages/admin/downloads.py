"""Files for administrators: the charts' numbers as CSV, and the audit trail as CSV or JSON lines.

The audit trail is written while it is read, so that its length needs no memory; taking it along is audited itself.
"""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from fastapi import HTTPException
from nicegui import app
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from engine.sketch import Sketch
from engine.spans import Span
from engine.types import Status
from ui.access import Right
from ui.api.errors import STATUS
from ui.auth import Visitor
from ui.components.review.export import harmless
from ui.desk import Desk
from ui.pages.admin.audit_query import AuditQuery
from ui.pages.admin.ranges import RANGES, Ranges, Steps

if TYPE_CHECKING:
    from storage.records import AuditEntry

PIECE = 500  # entries that are read at once
MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson; charset=utf-8"}
ENDINGS = [str(status) for status in Status if status.final]


def register(desk: Desk, ranges: Ranges) -> None:
    @app.get("/admin/history.csv", include_in_schema=False)
    async def history(request: Request) -> Response:
        _administrator(desk, request)
        range = RANGES.get(request.query_params.get("range", ""))
        if range is None:
            raise HTTPException(400, f"There is no such range; these are: {', '.join(RANGES)}.")
        text = history_csv(await ranges.steps(range))
        return Response(text, media_type=MEDIA_TYPES["csv"], headers=_as_file(f"qdesk-{range.key}", "csv"))

    @app.get("/admin/audit/export", include_in_schema=False)
    async def audit(request: Request) -> Response:
        visitor = _administrator(desk, request)
        format = request.query_params.get("format", "")
        if format not in MEDIA_TYPES:
            raise HTTPException(400, "There is no such format; csv and jsonl are.")
        try:
            query = AuditQuery.parse(request.query_params)
        except ValueError as error:
            raise HTTPException(400, str(error)) from None
        await desk.store.audit.add(visitor.user.name, "audit.export", format, query.address())
        lines = _audit_lines(desk, visitor, query, format)
        return StreamingResponse(lines, media_type=MEDIA_TYPES[format], headers=_as_file("qdesk-audit", format))


def history_csv(steps: Steps) -> str:
    """A row a step; empty cells where no server ran. Seconds, bytes, shares from 0 to 1; times are ISO 8601 in UTC."""
    rows = []
    for place, span in enumerate(steps.spans):
        at = steps.since + timedelta(seconds=steps.step_s * place)
        rows.append({"at": at.isoformat(), "step_s": steps.step_s, **(_cells(span) if span else {})})
    names = list(dict.fromkeys(name for row in rows for name in row))
    return "\ufeff" + _csv(names) + "".join(_csv(row.get(name) for name in names) for row in rows)


def _cells(span: Span) -> dict[str, object]:
    known = {f"refused_{code}": span.refused.get(code, 0) for code in STATUS}
    other = sum(count for code, count in span.refused.items() if code not in STATUS)
    return {
        "measured_s": round(span.seconds, 3),
        "running_mean": round(span.running, 3),
        "running_peak": span.running_peak,
        "waiting_mean": round(span.waiting, 3),
        "waiting_peak": span.waiting_peak,
        "tokens": span.tokens,
        "tokens_per_s": round(span.tokens / span.seconds, 3) if span.seconds else None,
        **_percentiles("ttft", span.ttft),
        **_percentiles("inter_token", span.gaps),
        **_percentiles("queue", span.queue),
        **{status: span.ended.get(status, 0) for status in ENDINGS},
        **known,
        "refused_other": other,
        "cpu": span.cpu,
        "memory_bytes": span.memory,
        "gpu": span.gpu,
        "gpu_memory_bytes": span.gpu_memory,
    }


def _percentiles(name: str, sketch: Sketch) -> Mapping[str, object]:
    return {
        f"{name}_{label}_s": None if (found := sketch.percentile(share)) is None else float(f"{found:.4g}")
        for label, share in (("median", 0.5), ("p95", 0.95))
    }


async def _audit_lines(desk: Desk, visitor: Visitor, query: AuditQuery, format: str) -> AsyncIterator[str]:
    """The file, piece by piece. Ends early for somebody who is no administrator any more."""
    if format == "csv":
        yield "\ufeff" + _csv(("id", "at", "actor", "action", "target", "detail"))
    cursor = None
    while desk.auth.allowed(visitor, Right.ADMINISTER):
        page = await desk.store.audit.list(**query.conditions(), limit=PIECE, cursor=cursor)
        yield "".join(_audit_line(entry, format) for entry in page.items)
        if (cursor := page.next) is None:
            return


def _audit_line(entry: "AuditEntry", format: str) -> str:
    cells = {**asdict(entry), "at": entry.at.isoformat()}
    if format == "jsonl":
        return json.dumps(cells, ensure_ascii=False) + "\n"
    return _csv(harmless(cell) for cell in cells.values())


def _administrator(desk: Desk, request: Request) -> Visitor:
    visitor = desk.auth.visitor_of(request)
    if visitor is None or not desk.auth.allowed(visitor, Right.ADMINISTER):
        raise HTTPException(403)
    return visitor


def _as_file(name: str, kind: str) -> dict[str, str]:
    stamp = f"{datetime.now(UTC):%Y%m%d-%H%M}"
    return {"Content-Disposition": f'attachment; filename="{name}-{stamp}.{kind}"', "Cache-Control": "no-store"}


def _csv(cells: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(["" if cell is None else cell for cell in cells])
    return line.getvalue()
