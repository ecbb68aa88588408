"""What is asked of the audit trail: to and from an address, so that a list can be sent and taken along as a file."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypedDict
from urllib.parse import urlencode


class Conditions(TypedDict):
    action: str
    actor: str | None
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """`first` and `last` (included) are days in the server's time zone, as YYYY-MM-DD; "" leaves that side open."""

    action: str = ""  # how the action begins
    actor: str = ""
    first: str = ""
    last: str = ""

    @classmethod
    def parse(cls, parameters: Mapping[str, str]) -> "AuditQuery":
        """Raises ValueError with a sentence for a day that is none."""
        query = cls(*(parameters.get(name, "").strip() for name in ("action", "actor", "first", "last")))
        query.conditions()
        return query

    def address(self) -> str:
        values = {"action": self.action, "actor": self.actor, "first": self.first, "last": self.last}
        return urlencode({name: value for name, value in values.items() if value})

    def conditions(self) -> Conditions:
        since, until = _day(self.first), _day(self.last)
        after = until + timedelta(days=1) if until else None
        return {"action": self.action, "actor": self.actor or None, "since": since, "until": after}


def _day(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").astimezone()
    except ValueError:
        raise ValueError(f"{text!r} is no day; a day is written like 2026-11-29.") from None
