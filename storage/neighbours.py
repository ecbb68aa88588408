"""What stands beside an exchange in the log: in time, and in likeness."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import Exchange
from storage.listing import lines
from storage.models import ExchangeTable
from storage.records import ExchangeRow
from storage.search import contains, quoted
from storage.text_index import FINAL

LONGEST = timedelta(hours=3)  # what waits and runs longer than this altogether is not looked for
TELLING, CANDIDATES = 12, 60  # terms that are searched for, of so many that are weighed

_NUMBER = col(ExchangeTable.number)
_TERMS = sa.table("exchanges_search_terms", sa.column("term", sa.Text), sa.column("doc", sa.Integer))
_INDEX = sa.table("exchanges_search", sa.column("rowid", sa.Integer), sa.column("rank", sa.Float))


def beside(session: Session, exchange: Exchange, limit: int) -> tuple[int, list[ExchangeRow]]:
    """What was waiting or running at some time while this one was: how many, and the first of them by arrival."""
    start, end = exchange.queued_at, exchange.finished_at or datetime.now(UTC)
    finished = col(ExchangeTable.finished_at)
    at_the_time = (
        col(ExchangeTable.queued_at) > start - LONGEST,
        col(ExchangeTable.queued_at) < end,
        sa.or_(finished.is_(None), finished > start),
        col(ExchangeTable.id) != exchange.id,
    )
    rows = sa.select(_NUMBER).where(*at_the_time).order_by(col(ExchangeTable.queued_at))
    numbers: Sequence[int] = session.connection().execute(rows).scalars().all()  # type: ignore[assignment]  # a key
    return len(numbers), lines(session, numbers[:limit])


def alike(session: Session, id: str, limit: int, indexed: bool) -> list[int]:
    """The numbers of what shares the rarest pieces of an exchange's prompt, the most alike first.

    With the trigram index: its terms of three characters, weighed by how few exchanges have them, and ranked by BM25.
    Without: the longest words of the prompt, newest first.
    """
    prompt = session.exec(select(ExchangeTable.prompt).where(col(ExchangeTable.id) == id)).first()
    pieces = telling(prompt or "")
    rows = _by_index(session, pieces, limit) if indexed else _in_rows(session, pieces, limit)
    if rows is None:
        return []
    own = session.exec(select(ExchangeTable.number).where(col(ExchangeTable.id) == id)).first()
    return [number for number in session.connection().execute(rows).scalars() if number != own][:limit]


def telling(text: str) -> list[str]:
    """Pieces of a text by which others like it are known: Latin words of four letters and more, three Han in a row."""
    pieces = [word.lower() for word in re.findall(r"[^\W\d_\u2e80-\u9fff]{4,}", text)]
    for run in re.findall(r"[\u3400-\u9fff]{3,}", text):
        pieces += [run[at : at + 3] for at in range(len(run) - 2)]
    return list(dict.fromkeys(pieces))[:CANDIDATES]


def _by_index(session: Session, pieces: list[str], limit: int) -> sa.Select[Any] | None:
    """A word is as rare as the rarest of its trigrams; what only this exchange has leads to no other."""
    trigrams = {piece: [piece[at : at + 3] for at in range(len(piece) - 2)] for piece in pieces}
    asked = {term for terms in trigrams.values() for term in terms}
    counts = {
        term: int(count)
        for term in asked
        for count in session.connection().execute(sa.select(_TERMS.c.doc).where(_TERMS.c.term == term)).scalars()
    }
    weighed = sorted((min(counts.get(term, 0) for term in terms), piece) for piece, terms in trigrams.items())
    chosen = [piece for count, piece in weighed if count > 1][:TELLING]
    if not chosen:
        return None
    match = sa.literal_column("exchanges_search").op("MATCH")(" OR ".join(map(quoted, chosen)))
    return sa.select(_INDEX.c.rowid).where(match).order_by(_INDEX.c.rank).limit(limit + 1)


def _in_rows(session: Session, pieces: list[str], limit: int) -> sa.Select[Any] | None:
    longest = sorted(pieces, key=len, reverse=True)[:3]
    if not longest:
        return None
    sqlite = session.get_bind().dialect.name == "sqlite"
    found = [contains(ExchangeTable.prompt, piece, sqlite=sqlite) for piece in longest]
    return sa.select(_NUMBER).where(sa.or_(*found), sa.text(FINAL)).order_by(_NUMBER.desc()).limit(limit + 1)
