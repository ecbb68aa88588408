"""Cursors: where the next piece of a list begins, as an opaque string. Knows no table.

Lists are paged by key, never by OFFSET: the thousandth page costs what the first does, and rows that come in meanwhile
move nothing.
"""

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeVar

import sqlalchemy as sa
from sqlmodel import col

from storage.records import Page

MAX_CURSOR = 200  # characters

Row = TypeVar("Row")
Item = TypeVar("Item")


def page(rows: Sequence[Row], limit: int, item: Callable[[Row], Item], key: Callable[[Row], list[str]]) -> Page[Item]:
    """Make a page of `limit` from rows that were asked for with `limit + 1`."""
    shown = rows[:limit]
    return Page([item(row) for row in shown], encode(key(shown[-1])) if len(rows) > limit else None)


def encode(key: list[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()


def before(time: datetime, id: str, cursor: str | None) -> list[sa.ColumnElement[bool]]:
    """The condition for what follows the cursor, newest first. Raises ValueError for what is not a cursor."""
    if cursor is None:
        return []
    at, last = decode(cursor, 2)
    with _sentence(cursor):
        when = datetime.fromisoformat(at).astimezone(UTC)
    return [sa.or_(col(time) < when, sa.and_(col(time) == when, col(id) < last))]


def before_number(number: int | None, cursor: str | None) -> list[sa.ColumnElement[bool]]:
    """The same for a list that is numbered."""
    if cursor is None:
        return []
    (last,) = decode(cursor, 1)
    with _sentence(cursor):
        return [col(number) < min(int(last), 2**63 - 1)]


def decode(cursor: str, *parts: int) -> list[str]:
    """Raises ValueError for what `encode` did not make from one of these numbers of parts."""
    with _sentence(cursor):
        if len(cursor) > MAX_CURSOR:
            raise ValueError
        key = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
        if not (isinstance(key, list) and len(key) in parts and all(isinstance(part, str) for part in key)):
            raise ValueError
    return key


@contextmanager
def _sentence(cursor: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{cursor[:MAX_CURSOR]!r} is not a cursor of this list.") from error
