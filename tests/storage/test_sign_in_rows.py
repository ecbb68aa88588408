"""The second step's codes, identities elsewhere, and sign-in links: each is good once, whoever asks at once."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from storage import Store
from storage.records import SecondFactor, User


@pytest.fixture
async def ada(store: Store) -> User:
    user = await store.users.create("ada", "hash", "staff")
    assert user is not None
    return user


async def test_a_second_step_is_turned_on_once_and_off(store: Store, ada: User) -> None:
    factors = store.second_factors
    assert await factors.of(ada.id) is None
    begun = await asyncio.gather(*(factors.turn_on(ada.id, f"nonce {n}", 100, ["a", "b"]) for n in range(5)))
    assert begun.count(True) == 1
    assert await factors.of(ada.id) == SecondFactor(nonce=f"nonce {begun.index(True)}", recovery_codes=2)
    now = await store.users.get(ada.id)
    assert now is not None
    assert now.second_step
    assert await factors.turn_off(ada.id)
    assert not await factors.turn_off(ada.id)
    assert await factors.of(ada.id) is None


async def test_a_step_of_time_is_used_once_and_none_before_it(store: Store, ada: User) -> None:
    await store.second_factors.turn_on(ada.id, "nonce", 100, [])
    assert not await store.second_factors.use_step(ada.id, 100)
    used = await asyncio.gather(*(store.second_factors.use_step(ada.id, 101) for _ in range(5)))
    assert used.count(True) == 1
    assert not await store.second_factors.use_step(ada.id, 99)
    assert await store.second_factors.use_step(ada.id, 102)


async def test_a_recovery_code_is_used_once_and_by_its_owner(store: Store, ada: User) -> None:
    bob = await store.users.create("bob", "hash", "staff")
    assert bob is not None
    await store.second_factors.turn_on(ada.id, "nonce", 1, ["a", "b"])
    assert not await store.second_factors.use_recovery_code(bob.id, "a")
    used = await asyncio.gather(*(store.second_factors.use_recovery_code(ada.id, "a") for _ in range(5)))
    assert used.count(True) == 1
    await store.second_factors.renew_recovery_codes(ada.id, ["c"])
    assert not await store.second_factors.use_recovery_code(ada.id, "b")
    assert await store.second_factors.use_recovery_code(ada.id, "c")


async def test_a_subject_leads_to_one_account(store: Store, ada: User) -> None:
    identities = store.identities
    made = await asyncio.gather(*(identities.create_user(f"dora {n}", "staff", "https://a", "1") for n in range(5)))
    (dora,) = [user for user in made if user]
    assert await identities.find("https://a", "1") == dora
    assert await identities.find("https://b", "1") is None
    assert await identities.create_user("ADA", "admin", "https://a", "2") is None  # the name is taken
    assert await identities.find("https://a", "2") is None
    assert not await identities.link(ada.id, "https://a", "1")
    assert await identities.link(ada.id, "https://a", "2")
    assert await identities.find("https://a", "2") == ada
    assert await identities.issuers(ada.id) == {"https://a"}
    assert await identities.of(ada.id) == [("https://a", "2")]
    assert await identities.unlink(ada.id, "https://a")
    assert not await identities.unlink(ada.id, "https://a")
    assert await identities.find("https://a", "2") is None


async def test_a_link_signs_in_once_and_for_minutes(store: Store, ada: User) -> None:
    now = datetime.now(UTC)
    await store.sign_in_links.create("token", ada.id, now + timedelta(minutes=10))
    await store.sign_in_links.create("old", ada.id, now - timedelta(seconds=1))
    assert await store.sign_in_links.find("token") == ada
    used = await asyncio.gather(*(store.sign_in_links.use("token") for _ in range(5)))
    assert [user for user in used if user] == [ada]
    assert await store.sign_in_links.use("old") is None
