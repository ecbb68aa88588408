"""Moments on pages: kept in UTC, told in the reader's time zone, as their language writes them."""

from datetime import datetime
from zoneinfo import ZoneInfo

from playwright.sync_api import Locator

ENGLISH, CHINESE = "%b %-d, %Y, %-I:%M %p", "%Y年%-m月%-d日 %H:%M"


def tells_the_readers_time(moment: Locator, zone: str, format: str) -> None:
    """Whether this is the moment, or a sentence with it."""
    at = datetime.fromisoformat(str(moment.get_attribute("datetime")))
    assert at.astimezone(ZoneInfo(zone)).strftime(format) in " ".join(moment.inner_text().split())
