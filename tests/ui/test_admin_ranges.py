"""What the charts show of the store: the whole at first, and then only what is new."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engine.monitor import Monitor
from engine.service import ChatService
from engine.settings import Settings
from engine.spans import Span
from tests.databases import new_store
from tests.engine.kit import UnrulyBackend
from ui.auth import Auth
from ui.desk import Desk
from ui.pages.admin import ranges
from ui.pages.admin.ranges import RANGES, Ranges

HOUR = RANGES["hour"]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk, None]:
    settings = Settings(backend="scripted", data_dir=tmp_path)
    store = new_store(tmp_path / "qdesk.db")
    service = ChatService(settings, UnrulyBackend(), store.exchanges)
    yield Desk(settings, service, store, Auth(store, settings), Monitor(service))
    store.close()


class Clock(datetime):
    """A clock that stands where a test puts it."""

    at = NOON

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]  # this one has a zone already
        return cls.at


async def keep(desk: Desk, minute: int) -> None:
    await desk.store.samples.add(Span(at=NOON + timedelta(minutes=minute), seconds=60, tokens=1000 + minute))


async def test_what_is_new_joins_what_is_known(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "datetime", Clock)
    monkeypatch.setattr("storage.samples.KEPT", timedelta(days=3650))
    known = Ranges(desk)
    for minute in (-61, -60, -31, -1):
        await keep(desk, minute)

    def tokens(steps: ranges.Steps) -> dict[int, int]:
        return {place: span.tokens for place, span in enumerate(steps.spans) if span}

    Clock.at = NOON
    assert tokens(await known.steps(HOUR)) == {0: 940, 29: 969, 59: 999}
    assert await known.steps(HOUR) is await known.steps(HOUR)

    await keep(desk, 0)
    Clock.at = NOON + timedelta(minutes=1, seconds=5)  # a step is under way
    assert tokens(await known.steps(HOUR)) == {27: 969, 57: 999, 58: 1000}
    await keep(desk, 1)
    Clock.at = NOON + timedelta(minutes=2, seconds=1)
    assert tokens(await known.steps(HOUR)) == {26: 969, 56: 999, 57: 1000, 58: 1001}
    Clock.at = NOON + timedelta(hours=5)
    assert tokens(await known.steps(HOUR)) == {}
