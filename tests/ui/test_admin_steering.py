"""Pause, banner and own limits: at once, at the next start, and nonsense in the store is passed over."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from engine.errors import NotReady, UserLimit
from tests.engine.kit import question
from tests.ui.desks import started_again
from ui import banner, steering
from ui.banner import Banner, apply_stored_banner, keep_banner
from ui.components.refusals import refusal
from ui.desk import Desk
from ui.i18n import language
from ui.steering import apply_own_limits, apply_stored_intake, set_intake


async def test_a_pause_outlives_a_restart_and_a_drain_does_not(desk: Desk) -> None:
    await set_intake(desk, "paused", "系统维护")
    assert desk.service.state() == ("paused", "系统维护")
    later = started_again(desk.settings, desk.store)
    await apply_stored_intake(later)
    assert later.service.state() == ("paused", "系统维护")

    await set_intake(later, "draining", "restart")
    assert later.service.state()[0] == "draining"
    last = started_again(desk.settings, desk.store)
    await apply_stored_intake(last)
    assert last.service.state() == ("ready", "")


async def test_resuming_is_kept_too(desk: Desk) -> None:
    await set_intake(desk, "paused")
    await set_intake(desk, "open")
    later = started_again(desk.settings, desk.store)
    await apply_stored_intake(later)
    assert later.service.state() == ("ready", "")


async def test_people_read_the_administrators_words_in_their_own_language(desk: Desk) -> None:
    await set_intake(desk, "paused", "午饭时间。")
    with pytest.raises(NotReady) as error:
        desk.service.check_open(None)
    assert refusal(error.value, language("zh")) == "午饭时间。 您的消息仍保留在这里。"
    await set_intake(desk, "paused")
    with pytest.raises(NotReady) as error:
        desk.service.check_open(None)
    assert refusal(error.value, language("en")).startswith("No questions are taken at the moment.")


@pytest.mark.parametrize("stored", ["{", "[]", '{"mode": "shut", "note": ""}', '{"mode": "paused"}', "7"])
async def test_a_stored_pause_that_is_none_lets_requests_in(desk: Desk, stored: str) -> None:
    await desk.store.options.set(steering.OPTION, stored)
    await apply_stored_intake(desk)
    assert desk.service.state() == ("ready", "")


async def test_a_banner_is_told_to_the_pages_and_outlives_a_restart(desk: Desk) -> None:
    seen: list[Banner | None] = []
    end = desk.board.watch(lambda: seen.append(desk.board.now))
    up = Banner("<b>今晚维护</b>", "warn", datetime.now(UTC) + timedelta(hours=1))
    await keep_banner(desk, up)
    later = started_again(desk.settings, desk.store)
    await apply_stored_banner(later)
    assert later.board.now == up
    await keep_banner(desk, None)
    end()
    await keep_banner(desk, up)
    assert seen == [up, None]
    for each in (desk, later):
        each.board.show(None)  # so that no timer is left


async def test_a_banner_goes_when_its_time_is_over(desk: Desk) -> None:
    gone = asyncio.Event()
    desk.board.watch(lambda: gone.set() if desk.board.now is None else None)
    desk.board.show(Banner("soon over", "info", datetime.now(UTC) + timedelta(milliseconds=30)))
    assert desk.board.now is not None
    await asyncio.wait_for(gone.wait(), 60)
    await keep_banner(desk, Banner("over", "info", datetime.now(UTC) - timedelta(seconds=1)))
    later = started_again(desk.settings, desk.store)
    await apply_stored_banner(later)
    assert later.board.now is None


@pytest.mark.parametrize(
    "stored",
    [
        "{",
        "[]",
        '{"text": "x", "level": "loud", "until": null}',
        '{"text": 1, "level": "info", "until": null}',
        '{"text": "x", "level": "info", "until": "2999-01-01"}',
        '{"text": "x", "level": "info", "until": 5}',
    ],
)
async def test_a_stored_banner_that_is_none_is_passed_over(desk: Desk, stored: str) -> None:
    await desk.store.options.set(banner.OPTION, stored)
    await apply_stored_banner(desk)
    assert desk.board.now is None


async def test_a_persons_own_limit_holds_at_once_and_at_the_next_start(desk: Desk) -> None:
    ada = await desk.store.users.create("ada", "hash", "staff")
    assert ada is not None
    await desk.store.users.set_max_requests(ada.id, 0)
    await apply_own_limits(desk)
    with pytest.raises(UserLimit):
        await desk.service.submit(question(person=ada.id))
    later = started_again(desk.settings, desk.store)
    await apply_own_limits(later)
    assert later.service.gate.own_limits == {ada.id: 0}
    await desk.store.users.set_max_requests(ada.id, None)
    await apply_own_limits(later)
    assert later.service.gate.own_limits == {}
