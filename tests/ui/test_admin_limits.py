"""Limits that administrators change hold at once and at the next start; nonsense in the store is passed over."""

import pytest

from tests.engine.kit import UnrulyBackend
from tests.ui.desks import started_again
from ui.desk import Desk
from ui.limits import OPTION, LiveLimits, apply_stored_limits, bounds, keep_limits, limits_now, limits_of, reset_limits


async def test_changed_limits_hold_at_once_and_at_the_next_start(desk: Desk) -> None:
    chosen = LiveLimits(concurrent=3, waiting=0, per_person=2, max_new_tokens=99)
    await keep_limits(desk, chosen)
    assert limits_now(desk.service) == chosen
    later = started_again(desk.settings, desk.store)
    assert limits_now(later.service) == limits_of(desk.settings)
    await apply_stored_limits(later)
    assert limits_now(later.service) == chosen


async def test_going_back_to_the_settings_is_kept_too(desk: Desk) -> None:
    await keep_limits(desk, LiveLimits(3, 0, 2, 99))
    await reset_limits(desk)
    assert limits_now(desk.service) == limits_of(desk.settings)
    later = started_again(desk.settings, desk.store)
    await apply_stored_limits(later)
    assert limits_now(later.service) == limits_of(desk.settings)


@pytest.mark.parametrize(
    "stored",
    [
        "{",
        "[]",
        '{"concurrent": 1}',
        '{"concurrent": 0, "waiting": 1, "per_person": 1, "max_new_tokens": 1}',
        '{"concurrent": "9", "waiting": 1, "per_person": 1, "max_new_tokens": 1}',
        '{"concurrent": 9, "waiting": -1, "per_person": 1, "max_new_tokens": 1}',
        '{"concurrent": 9, "waiting": 1, "per_person": 1, "max_new_tokens": 1, "more": 1}',
    ],
)
async def test_stored_nonsense_leaves_the_settings_in_force(desk: Desk, stored: str) -> None:
    await desk.store.options.set(OPTION, stored)
    await apply_stored_limits(desk)
    assert limits_now(desk.service) == limits_of(desk.settings)


async def test_no_more_may_run_than_the_backend_can_carry(desk: Desk) -> None:
    backend = desk.service.backend
    assert isinstance(backend, UnrulyBackend)
    backend.capacity = 4
    assert bounds(desk.service)["concurrent"] == (1, 4)
    await keep_limits(desk, LiveLimits(50, 0, 2, 99))
    assert limits_now(desk.service).concurrent == 4
