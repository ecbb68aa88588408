"""How long what is logged is kept: days by kind, which administrators change while the server runs.

A stored change takes precedence over QDESK_RETENTION_DAYS. Knows nothing of pages and of what is deleted.
"""

import json
import time
from typing import TYPE_CHECKING

from loguru import logger

from ui.desk import Desk

if TYPE_CHECKING:
    from storage.retention import Days, Kind

OPTION = "retention"
DRIFT_S = 3600.0  # the time of day may be corrected by so much a day
LONGEST_DAYS = 36_500


async def days_now(desk: Desk) -> "Days":
    """Days by kind; 0 keeps all."""
    days: Days = {"exchanges": desk.settings.retention_days, "audit": 0, "samples": 0}
    stored = await desk.store.options.get(OPTION)
    try:
        changed = json.loads(stored or "{}")
        return {kind: _checked(changed.get(kind, number)) for kind, number in days.items()}
    except (ValueError, AttributeError):
        logger.warning("the stored retention makes no sense and is left aside: {}", stored)
        return days


async def keep_days(desk: Desk, days: "Days") -> None:
    await desk.store.options.set(OPTION, json.dumps(days))


async def retain(desk: Desk, actor: str = "") -> "dict[Kind, int]":
    """Delete what is older than it may become, and write down how much. `actor` is "" for the server itself."""
    days = await days_now(desk)
    if not any(days.values()):
        return {}
    deleted = await desk.store.retention.enforce(days)
    if any(deleted.values()) or actor:
        detail = ", ".join(
            f"{kind} {count} (older than {days[kind]} days)" for kind, count in deleted.items() if days[kind]
        )
        await desk.store.audit.add(actor, "retention.run", detail=detail)
        logger.info("retention: deleted {}", detail)
    return deleted


def _checked(number: object) -> int:
    if not isinstance(number, int) or not 0 <= number <= LONGEST_DAYS:
        raise ValueError
    return number


class SteadyDays:
    """Whether the time of day can be trusted to say what is old: since the last look it went as a steady clock does.

    A clock that is set years ahead, by hand or by a broken battery, would have the whole log deleted at once.
    """

    def __init__(self) -> None:
        self._ahead_s = self._difference()

    def steady(self) -> bool:
        """False: it was set since the last look; from the next look on it counts as it is now."""
        before, self._ahead_s = self._ahead_s, self._difference()
        return abs(self._ahead_s - before) <= DRIFT_S

    @staticmethod
    def _difference() -> float:
        return time.time() - time.monotonic()
