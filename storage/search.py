"""Finding text in prompts and answers: conditions for a query, and the snippet around a hit.

A search text is words at white space, and every word must be found, anywhere inside prompt or answer, without regard
to the case of Latin letters. Words of three or more characters go through SQLite's trigram index where there is one;
shorter ones (most Chinese words) and other databases through LIKE on the rows themselves.
"""

import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlmodel import col

from engine.types import Status
from storage.models import ExchangeTable, plain

MAX_TEXT, MAX_WORDS = 200, 10
UNFINISHED = [str(status) for status in Status if not status.final]

_INDEX = sa.table("exchanges_search", sa.column("rowid", sa.Integer))


def words(text: str) -> list[str]:
    """The words to look for: at most MAX_WORDS in the first MAX_TEXT characters."""
    return plain(text)[:MAX_TEXT].split()[:MAX_WORDS]


def contains(column: Any, word: str, *, sqlite: bool) -> sa.ColumnElement[bool]:
    """LIKE with nothing in `word` taken as a wildcard."""
    escaped = re.sub(r"([\\%_])", r"\\\1", word)
    pattern = f"%{escaped}%"
    like = col(column).like if sqlite else col(column).ilike  # SQLite's LIKE disregards case by itself
    return like(pattern, escape="\\")


def in_rows(text: str, *, sqlite: bool) -> list[sa.ColumnElement[bool]]:
    """Conditions on exchanges that need no index."""
    return [
        sa.or_(contains(ExchangeTable.prompt, word, sqlite=sqlite), contains(ExchangeTable.answer, word, sqlite=sqlite))
        for word in words(text)
    ]


def in_index(text: str) -> list[sa.ColumnElement[bool]]:
    """Conditions on exchanges that use the trigram index for all words that are long enough.

    Rows that are not final are not in the index; there are few, and they are looked through.
    """
    long = [word for word in words(text) if len(word) >= 3]
    short = " ".join(word for word in words(text) if len(word) < 3)
    if not long:
        return in_rows(short, sqlite=True)
    quoted = " AND ".join('"' + word.replace('"', '""') + '"' for word in long)
    found = sa.select(_INDEX.c.rowid).where(sa.literal_column("exchanges_search").op("MATCH")(quoted))
    unfinished = sa.and_(col(ExchangeTable.status).in_(UNFINISHED), *in_rows(" ".join(long), sqlite=True))
    return [sa.or_(col(ExchangeTable.number).in_(found), unfinished), *in_rows(short, sqlite=True)]


def snippet(texts: Sequence[str], text: str, around: int = 40) -> str:
    """The first hit of a search in `texts`, with `around` characters on both sides, in one line."""
    for content in texts:
        for word in words(text):
            if hit := re.search(re.escape(word), content, re.IGNORECASE):
                start, end = max(0, hit.start() - around), min(len(content), hit.end() + around)
                piece = " ".join(content[start:end].split())
                return f"{'…' if start else ''}{piece}{'…' if end < len(content) else ''}"
    return ""
