from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from storage import Store
from tests.storage.making import a_person

TOMORROW = timedelta(days=1)


def soon() -> datetime:
    return datetime.now(UTC) + TOMORROW


async def test_a_session_is_found_by_its_token_until_it_ends(store: Store) -> None:
    ada = await a_person(store)
    session = await store.sessions.create(ada.id, "token hash", "Firefox", soon())
    assert session.user == replace(ada, last_seen_at=session.created_at)
    assert session.agent == "Firefox"
    assert await store.sessions.find("token hash") == session
    assert await store.sessions.find("another") is None
    await store.sessions.end(session.id)
    assert await store.sessions.find("token hash") is None


async def test_an_expired_session_is_gone(store: Store) -> None:
    ada = await a_person(store)
    await store.sessions.create(ada.id, "old", "Firefox", datetime.now(UTC) - timedelta(seconds=1))
    assert await store.sessions.find("old") is None
    assert await store.sessions.list(ada.id) == []
    await store.sessions.create(ada.id, "old", "Firefox", soon())  # cleared away, so that the token is free again
    assert await store.sessions.find("old")


async def test_a_disabled_account_has_no_session(store: Store) -> None:
    ada = await a_person(store)
    await store.sessions.create(ada.id, "token hash", "Firefox", soon())
    await store.users.set_disabled(ada.id, True)
    assert await store.sessions.find("token hash") is None
    await store.users.set_disabled(ada.id, False)
    assert await store.sessions.find("token hash")


async def test_all_of_ones_sessions_end_and_nobody_elses(store: Store) -> None:
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    for person, token in ((ada, "a1"), (ada, "a2"), (bob, "b1")):
        await store.sessions.create(person.id, token, "Firefox", soon())
    await store.sessions.end_all(ada.id)
    assert await store.sessions.list(ada.id) == []
    assert [session.user for session in await store.sessions.list(bob.id)] == [bob]


async def test_the_session_used_last_is_listed_first(store: Store) -> None:
    ada = await a_person(store)
    first = await store.sessions.create(ada.id, "a1", "Firefox", soon())
    second = await store.sessions.create(ada.id, "a2", "Chromium", soon())
    assert [session.id for session in await store.sessions.list(ada.id)] == [second.id, first.id]
    await store.sessions.seen(first.id)
    assert [session.id for session in await store.sessions.list(ada.id)] == [first.id, second.id]


async def test_a_session_for_nobody_is_refused(store: Store) -> None:
    with pytest.raises(sa.exc.IntegrityError):
        await store.sessions.create("0" * 32, "token hash", "Firefox", soon())
    assert await store.sessions.find("token hash") is None


async def test_running_sessions_are_counted_by_person(store: Store) -> None:
    now = datetime.now(UTC)
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    await store.sessions.create(ada.id, "one", "Firefox", now + timedelta(hours=1))
    await store.sessions.create(ada.id, "two", "Chrome", now + timedelta(hours=1))
    await store.sessions.create(bob.id, "over", "Chrome", now - timedelta(hours=1))
    assert await store.sessions.counts() == {ada.id: 2}
