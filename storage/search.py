"""Finding text in prompts and answers: conditions for a query, and the snippet around a hit.

A search text is words at white space, and every word must be found, anywhere inside prompt or answer, without regard
to the case of Latin letters. On SQLite a trigram index finds words of three characters and more. A word of one or two
characters (most Chinese words) is found by the terms of that index that begin with it: two line feeds follow every text
in the index, so that each character begins a term. On PostgreSQL the words are conditions on the rows: its planner
answers them by the index of storage/text_index.py where that is the quicker way, and short words row by row.
"""

import re
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlmodel import Session, col

from engine.types import Status
from storage.models import ExchangeTable, plain

MAX_TEXT, MAX_WORDS = 200, 10
MAX_TERMS = 4000  # a word that begins more terms than this is so common that the rows themselves answer sooner
UNFINISHED = [str(status) for status in Status if not status.final]

_TERMS = sa.table("exchanges_search_terms", sa.column("term", sa.Text), sa.column("doc", sa.Integer))
_LAST = "\U0010ffff"


def words(text: str) -> list[str]:
    """The words to look for: at most MAX_WORDS in the first MAX_TEXT characters."""
    return plain(text)[:MAX_TEXT].split()[:MAX_WORDS]


def contains(column: Any, word: str, *, sqlite: bool) -> sa.ColumnElement[bool]:
    """LIKE with nothing in `word` taken as a wildcard."""
    escaped = re.sub(r"([\\%_])", r"\\\1", word)
    pattern = f"%{escaped}%"
    if sqlite:
        return col(column).like(pattern, escape="\\")  # which disregards case by itself
    return col(column).ilike(pattern)  # whose escape character this is, without being told


def in_rows(text: str, *, sqlite: bool) -> list[sa.ColumnElement[bool]]:
    """Conditions on exchanges that need no index."""
    return [
        sa.or_(contains(ExchangeTable.prompt, word, sqlite=sqlite), contains(ExchangeTable.answer, word, sqlite=sqlite))
        for word in words(text)
    ]


def quoted(word: str) -> str:
    """The word as a string of FTS5's query language, in which nothing has a meaning of its own."""
    return '"' + word.replace('"', '""') + '"'


def in_index(session: Session, text: str) -> tuple[str, list[str]] | None:
    """The query for the index, and the words that it leaves to LIKE. None: the index is of no help.

    Long words are asked for as they are. Without any, the short word with the fewest terms is.
    """
    wanted = words(text)
    long = [word for word in wanted if len(word) >= 3]
    if long:
        return " AND ".join(map(quoted, long)), [word for word in wanted if len(word) < 3]
    found = [(beginning_with(session, word), word) for word in wanted]
    some = [(terms, word) for terms, word in found if len(terms) <= MAX_TERMS]
    if not some:
        return None
    terms, word = min(some, key=lambda each: len(each[0]))
    others = [other for other in wanted if other != word]
    return " OR ".join(map(quoted, terms)) or quoted(word), others  # a word of two characters alone matches nothing


def beginning_with(session: Session, word: str) -> list[str]:
    """The index's terms that begin with this short word; one more than MAX_TERMS at most."""
    start = word.lower()  # the index knows no capitals
    terms = sa.select(_TERMS.c.term).where(_TERMS.c.term >= start, _TERMS.c.term < start + _LAST)
    return list(session.connection().execute(terms.limit(MAX_TERMS + 1)).scalars())


def snippet(texts: Sequence[str], text: str, around: int = 40) -> str:
    """The first hit of a search in `texts`, with `around` characters on both sides, in one line."""
    for content in texts:
        for word in words(text):
            if hit := re.search(re.escape(word), content, re.IGNORECASE):
                start, end = max(0, hit.start() - around), min(len(content), hit.end() + around)
                piece = " ".join(content[start:end].split())
                return f"{'…' if start else ''}{piece}{'…' if end < len(content) else ''}"
    return ""
