"""What a reviewer asks the log for: the filters and the opened exchange, to and from the page's address.

    query, ignored = Query.parse({"status": "failed", "time": "7d"})
    query.address()                                    -> "status=failed&time=7d"
    query.filter(person_id, reader_id, now, zone)      -> ExchangeFilter

Knows nothing of pages and of the store. A day is a day in the reader's time zone.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Literal, get_args
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from engine.types import ExchangeFilter, Source, Status

SPANS = {"today": 1, "7d": 7, "30d": 30}  # days, the running one included
MAX_TEXT = 200
FIXED_KEY = "(fixed key)"  # stands for a person in the address, unless somebody is really called so
LISTS = ("down", "cut", "waits", "open", "mine")  # thumbs-down, cut off, long waits, not reviewed, assigned to oneself
RATINGS: dict[str, Literal[1, -1]] = {"up": 1, "down": -1}
MOST_ALIKE = 50  # exchanges that are listed, and exported, as like another
_FIELDS = (
    "list", "person", "time", "from", "to", "status", "source", "model", "rating", "label", "text", "like", "open"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    list: str = ""  # one of LISTS; "" is all
    person: str = ""  # the account's name, or FIXED_KEY; "" is everybody
    span: str = ""  # a key of SPANS; "" is ever, or `first` to `last`
    first: date | None = None
    last: date | None = None  # this day is included
    status: Status | None = None
    source: Source | None = None
    model: str = ""
    rating: str = ""  # a key of RATINGS
    label: str = ""
    text: str = ""
    like: str = ""  # an exchange's id: what resembles it; nothing else is asked then
    open: str = ""  # the opened exchange's id

    @classmethod
    def parse(cls, fields: Mapping[str, object]) -> "tuple[Query, tuple[str, ...]]":
        """The query of an address or a form, with the names of the fields that made no sense and are left out.

        Left out is also what contradicts a list, or is no part of a search for others like an exchange.
        """
        given = {name: _clean(fields.get(name)) for name in _FIELDS}
        first, last = _date(given["from"]), _date(given["to"])
        if first and last and last < first:
            first, last = last, first
        span = given["time"] if given["time"] in SPANS else ""
        query = cls(
            list=given["list"] if given["list"] in LISTS else "",
            person=given["person"],
            span=span,
            first=None if span else first,
            last=None if span else last,
            status=Status(given["status"]) if given["status"] in set(Status) else None,
            source=next((source for source in get_args(Source) if source == given["source"]), None),
            model=given["model"],
            rating=given["rating"] if given["rating"] in RATINGS else "",
            label=given["label"],
            text=given["text"],
            like=_id(given["like"]),
            open=_id(given["open"]),
        )
        if query.list == "down" and query.rating == "up":
            query = replace(query, rating="")
        if query.like:
            query = cls(like=query.like, open=query.open)
        # A span and days contradict each other; the span wins without a word, as in the form.
        known = query.fields().keys() | ({"from", "to"} if query.span else set())
        ignored = [name for name in _FIELDS if given[name] and name not in known]
        return query, tuple(ignored)

    def fields(self) -> dict[str, str]:
        """The address's parameters, those that are set."""
        values = {
            "list": self.list,
            "person": self.person,
            "time": self.span,
            "from": self.first.isoformat() if self.first else "",
            "to": self.last.isoformat() if self.last else "",
            "status": self.status or "",
            "source": self.source or "",
            "model": self.model,
            "rating": self.rating,
            "label": self.label,
            "text": self.text,
            "like": self.like,
            "open": self.open,
        }
        return {name: str(value) for name, value in values.items() if value}

    def address(self) -> str:
        """The part of the address behind the question mark."""
        return urlencode(self.fields())

    def closed(self) -> "Query":
        """The same list with nothing opened."""
        return replace(self, open="")

    def bounds(self, now: datetime, zone: tzinfo) -> tuple[datetime | None, datetime | None]:
        """The moments between which an exchange must have been asked: from the first on, before the second."""
        today = now.astimezone(zone).date()
        first = today - timedelta(days=SPANS[self.span] - 1) if self.span else self.first
        since = _midnight(first, zone) if first else None
        until = _midnight(self.last + timedelta(days=1), zone) if self.last else None
        return since, until

    def asker(self, account_id: str | None) -> str | None:
        """Whose exchanges are meant, as ExchangeFilter has it; None is everybody. `account_id` is whom the name is of.

        Raises LookupError where the name is nobody's.
        """
        if self.person and account_id is None:
            if self.person != FIXED_KEY:
                raise LookupError(self.person)
            return ""
        return account_id

    def filter(self, asker: str | None, reader: str, now: datetime, zone: tzinfo) -> ExchangeFilter:
        """What the store is asked for by `reader`, a reviewer's user id."""
        since, until = self.bounds(now, zone)
        return ExchangeFilter(
            person=asker,
            since=since,
            until=until,
            status=self.status,
            source=self.source,
            text=self.text,
            model=self.model or None,
            rating=-1 if self.list == "down" else RATINGS.get(self.rating),
            label=self.label or None,
            assignee=reader if self.list == "mine" else None,
            reviewed=False if self.list == "open" else None,
            cut_off=self.list == "cut",
            long_wait=self.list == "waits",
        )


def reader_zone(name: object, offset_minutes: object) -> tzinfo:
    """The time zone that a browser names; where the server does not know the name, its present distance from UTC."""
    if isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9_+/-]{1,64}", name) and not name.startswith("/"):
        with suppress(LookupError, ValueError, OSError):
            return ZoneInfo(name)
    if isinstance(offset_minutes, int) and abs(offset_minutes) < 24 * 60:
        return timezone(timedelta(minutes=offset_minutes))
    return UTC


def _clean(value: object) -> str:
    """The field's text without what no database and no address takes: NUL and halves of surrogate pairs."""
    if not isinstance(value, str):
        return ""
    return value.encode("utf-8", "replace").decode().replace("\0", "").strip()[:MAX_TEXT]


def _id(text: str) -> str:
    return text if re.fullmatch(r"[0-9A-Za-z-]{1,64}", text) else ""


def _date(text: str) -> date | None:
    with suppress(ValueError):
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) and "1970" < text < "9999" else None
    return None


def _midnight(day: date, zone: tzinfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)
