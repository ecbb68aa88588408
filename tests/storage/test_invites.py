"""Invitations open once, and not for ever."""

import asyncio
from datetime import UTC, datetime, timedelta

from storage import Store
from storage.records import Invite, User

HOUR = timedelta(hours=1)


async def invite(store: Store, token: str = "t", name: str = "", lasts: timedelta = HOUR) -> Invite:
    expires_at = datetime.now(UTC) + lasts
    return await store.invites.create(token, name=name, role="reviewer", invited_by="chief", expires_at=expires_at)


async def test_an_invitation_makes_one_account_with_its_role(store: Store) -> None:
    made = await invite(store)
    assert await store.invites.find("t") == made
    user = await store.invites.accept("t", "Dora", "hash")
    assert isinstance(user, User)
    assert (user.name, user.role) == ("Dora", "reviewer")
    assert await store.invites.accept("t", "Another", "hash") == "over"
    assert await store.invites.find("t") is None
    assert await store.invites.list() == []


async def test_two_who_open_it_at_once_make_one_account(store: Store) -> None:
    await invite(store)
    made = await asyncio.gather(*(store.invites.accept("t", f"person {n}", "hash") for n in range(5)))
    assert made.count("over") == 4
    assert await store.users.count() == 1


async def test_a_name_that_is_taken_leaves_the_invitation_open(store: Store) -> None:
    await store.users.create("dora", "hash", "staff")
    await invite(store)
    assert await store.invites.accept("t", "DORA", "hash") == "taken"
    assert isinstance(await store.invites.accept("t", "Dora 2", "hash"), User)


async def test_the_name_in_the_invitation_outweighs_what_is_typed(store: Store) -> None:
    await invite(store, name="carol")
    user = await store.invites.accept("t", "mallory", "hash")
    assert isinstance(user, User)
    assert user.name == "carol"


async def test_one_that_is_over_or_taken_back_opens_nothing(store: Store) -> None:
    await invite(store, "old", lasts=-HOUR)
    assert await store.invites.find("old") is None
    assert await store.invites.accept("old", "x", "hash") == "over"
    made = await invite(store, "new")
    assert await store.invites.list() == [made]
    assert await store.invites.take_back(made.id)
    assert not await store.invites.take_back(made.id)
    assert await store.invites.accept("new", "x", "hash") == "over"
