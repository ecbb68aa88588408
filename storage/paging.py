"""Cursors: where the next piece of a list begins, as an opaque string. Knows no table.

Lists are paged by key, never by OFFSET: the thousandth page costs what the first does, and rows that come in meanwhile
move nothing.
"""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa
from sqlmodel import col

from storage.records import Page

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
    when = datetime.fromisoformat(at)
    if when.utcoffset() is None:
        raise ValueError(f"{cursor!r} is not a cursor of this list.")
    return [sa.or_(col(time) < when, sa.and_(col(time) == when, col(id) < last))]


def decode(cursor: str, parts: int) -> list[str]:
    """Raises ValueError for what `encode` did not make from that many parts."""
    try:
        key = json.loads(base64.b64decode(cursor, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{cursor!r} is not a cursor of this list.") from error
    if not (isinstance(key, list) and len(key) == parts and all(isinstance(part, str) for part in key)):
        raise ValueError(f"{cursor!r} is not a cursor of this list.")
    return key
