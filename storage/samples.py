"""How the server fared, a row a minute, for KEPT. Numbers only: no text and no names."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from engine.sketch import read
from engine.spans import Span, side_by_side
from storage.database import Database
from storage.models import Base, SampleRow

KEPT = timedelta(days=35)  # at most 50,400 rows, some 20 MB


class Samples:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, span: Span) -> None:
        """Keep this span."""
        values = _values(span)
        await self._database.write(lambda session: session.exec(sa.insert(SampleRow).values(**values)))

    async def trim(self) -> None:
        """Let go of those that are older than KEPT by a clock that is right."""
        over = sa.delete(SampleRow).where(col(SampleRow.at) < datetime.now(UTC) - KEPT)
        await self._database.write(lambda session: session.exec(over))

    async def since(self, when: datetime) -> list[Span]:
        """Those that began at `when` or later, the oldest first; of several processes added up."""
        rows = sa.select(_TABLE).where(_TABLE.c.at >= when).order_by(_TABLE.c.at)

        def work(session: Session) -> list[Span]:
            return side_by_side([_span(row) for row in session.connection().execute(rows)])

        return await self._database.search(work)


def _values(span: Span) -> dict[str, object]:
    return {
        "at": span.at,
        "seconds": span.seconds,
        "running": span.running,
        "running_peak": span.running_peak,
        "waiting": span.waiting,
        "waiting_peak": span.waiting_peak,
        "tokens": span.tokens,
        "ended": json.dumps(dict(span.ended)),
        "refused": json.dumps(dict(span.refused)),
        "ttft": span.ttft.json(),
        "gaps": span.gaps.json(),
        "queue": span.queue.json(),
        "cpu": span.cpu,
        "memory": span.memory,
        "gpu": span.gpu,
        "gpu_memory": span.gpu_memory,
    }


def _span(row: sa.Row[*tuple[Any, ...]]) -> Span:
    return Span(
        at=row.at,
        seconds=row.seconds,
        running=row.running,
        running_peak=row.running_peak,
        waiting=row.waiting,
        waiting_peak=row.waiting_peak,
        tokens=row.tokens,
        ended=json.loads(row.ended),
        refused=json.loads(row.refused),
        ttft=read(row.ttft),
        gaps=read(row.gaps),
        queue=read(row.queue),
        cpu=row.cpu,
        memory=row.memory,
        gpu=row.gpu,
        gpu_memory=row.gpu_memory,
    )


_TABLE = Base.metadata.tables["samples"]  # a week has ten thousand rows, and objects of the mapper cost their time
