"""What a server does by itself while it runs: it keeps each minute's figures, and lets go of what is too old."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.storage.making import an_exchange
from ui.desk import Desk
from ui.retention import keep_days
from ui.serving import Life


async def test_each_minute_of_the_monitors_is_kept(desk: Desk) -> None:
    keeping = asyncio.create_task(Life(desk)._keep_minutes())
    first, since = desk.monitor.now, desk.monitor.now.at - timedelta(minutes=1)
    for minutes, tokens in ((1, 700), (2, 750)):
        desk.monitor.history.take(replace(first, at=first.at + timedelta(minutes=minutes), tokens=tokens), [])
    while len(kept := await desk.store.samples.since(since)) < 2:
        pass
    assert [(span.at, span.tokens) for span in kept] == [(first.at, 700), (first.at + timedelta(minutes=1), 50)]
    keeping.cancel()


async def test_what_is_older_than_its_days_goes_without_anybody_asking(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ui.serving.HOUR_S", 0.0)  # before the first time
    await keep_days(desk, {"exchanges": 30, "audit": 0, "samples": 0})
    now = datetime.now(UTC)
    old, new = (an_exchange(queued_at=now - timedelta(days=days)) for days in (31, 29))
    for exchange in (old, new):
        await desk.store.exchanges.record(exchange)
    retaining = asyncio.create_task(Life(desk)._retain())
    while not (entries := (await desk.store.audit.list()).items):
        pass
    told = [(entry.actor, entry.action, entry.detail) for entry in entries]
    assert told == [("", "retention.run", "exchanges 1 (older than 30 days)")]
    assert await desk.store.exchanges.get(old.id) is None
    assert await desk.store.exchanges.get(new.id)
    retaining.cancel()
