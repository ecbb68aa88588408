import asyncio
import threading
from datetime import UTC, datetime, timedelta

from engine.types import Sampling
from storage import Store
from storage.records import User
from tests.storage.making import a_person


async def test_an_account_is_found_by_id_and_by_name_in_any_case(store: Store) -> None:
    ada = await store.users.create("Ada", "hash", "reviewer")
    assert ada is not None
    assert (ada.name, ada.role, ada.disabled, ada.language, ada.last_seen_at) == ("Ada", "reviewer", False, "", None)
    assert len(ada.id) == 32
    assert abs(datetime.now(UTC) - ada.created_at) < timedelta(minutes=1)
    assert await store.users.get(ada.id) == ada
    assert await store.users.by_name("aDA") == ada
    assert await store.users.by_name("ＡＤＡ") == ada  # as a Chinese keyboard may write it
    assert await store.users.password_hash("ADA") == (ada, "hash")
    assert await store.users.get("0" * 32) is None
    assert await store.users.by_name("bob") is None
    assert await store.users.password_hash("bob") is None


async def test_a_name_is_given_once_without_regard_to_case(store: Store) -> None:
    assert await store.users.create("Straße", "hash", "staff")
    assert await store.users.create("STRASSE", "hash", "staff") is None
    assert await store.users.create("李雷", "hash", "staff")
    assert await store.users.create("李雷", "hash", "staff") is None
    assert [user.name for user in await store.users.list()] == ["Straße", "李雷"]
    assert await store.users.count() == 2


async def test_there_is_one_first_administrator(store: Store) -> None:
    await a_person(store)
    first = await store.users.create_first("root", "hash")
    assert first is not None
    assert first.role == "admin"
    assert await store.users.create_first("other", "hash") is None
    assert await store.users.count() == 2


async def test_a_first_administrator_does_not_take_somebody_elses_name(store: Store) -> None:
    await a_person(store, "ada")
    assert await store.users.create_first("ADA", "hash") is None
    assert await store.users.create_first("grace", "hash")


def test_eight_programs_that_make_the_first_administrator_at_once_make_one(url: str) -> None:
    stores = [Store(url) for _ in range(8)]
    for number, store in enumerate(stores):
        store.open(beside=number > 0)
    start = threading.Barrier(len(stores))
    made: list[User | None] = []

    def make(store: Store, name: str) -> None:
        start.wait()
        made.append(asyncio.run(store.users.create_first(name, "hash")))

    threads = [threading.Thread(target=make, args=(store, f"admin{n}")) for n, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 8
    assert len([user for user in made if user]) == 1
    assert asyncio.run(stores[0].users.count()) == 1
    for store in stores:
        store.close()


async def test_the_last_enabled_administrator_stays(store: Store) -> None:
    root = await store.users.create_first("root", "hash")
    assert root is not None
    assert not await store.users.set_disabled(root.id, True)
    assert not await store.users.set_role(root.id, "staff")
    assert await store.users.set_role(root.id, "admin")

    ada = await a_person(store)
    assert await store.users.set_role(ada.id, "admin")
    assert await store.users.set_disabled(ada.id, True)
    assert not await store.users.set_role(root.id, "reviewer")  # the other one is disabled
    assert await store.users.set_disabled(ada.id, False)
    assert await store.users.set_role(root.id, "reviewer")
    assert not await store.users.set_disabled(ada.id, True)
    assert await store.users.get(root.id) == root.__class__(
        id=root.id,
        name="root",
        role="reviewer",
        disabled=False,
        language="",
        theme="",
        created_at=root.created_at,
        last_seen_at=None,
    )


async def test_two_administrators_who_demote_each_other_at_once_leave_one(store: Store) -> None:
    root = await store.users.create_first("root", "hash")
    ada = await store.users.create("ada", "hash", "admin")
    assert root is not None
    assert ada is not None
    results = await asyncio.gather(store.users.set_role(root.id, "staff"), store.users.set_disabled(ada.id, True))
    assert sorted(results) == [False, True]


async def test_a_change_to_nobody_is_refused(store: Store) -> None:
    assert not await store.users.set_role("0" * 32, "admin")
    assert not await store.users.set_disabled("0" * 32, False)


async def test_preferences_password_and_last_seen_change(store: Store) -> None:
    ada = await a_person(store)
    await store.users.set_preferences(ada.id, language="zh", theme="dark")
    await store.users.set_preferences(ada.id, theme="")
    await store.users.set_preferences(ada.id)
    await store.users.set_password(ada.id, "another hash")
    await store.users.seen(ada.id)
    found = await store.users.password_hash("ada")
    assert found is not None
    now, password_hash = found
    assert (now.language, now.theme, password_hash) == ("zh", "", "another hash")
    assert now.last_seen_at is not None
    assert now.last_seen_at.utcoffset() == timedelta(0)


async def test_what_new_conversations_begin_with_is_kept_with_the_account(store: Store) -> None:
    ada = await a_person(store)
    assert await store.users.defaults(ada.id) == (None, None)
    await store.users.set_defaults(ada.id, system_prompt="Be brief.", sampling=Sampling(temperature=0, stop=("完",)))
    assert await store.users.defaults(ada.id) == ("Be brief.", Sampling(temperature=0, stop=("完",)))
    await store.users.set_defaults(ada.id, system_prompt=None, sampling=None)
    assert await store.users.defaults(ada.id) == await store.users.defaults("nobody") == (None, None)


async def test_a_person_may_have_a_limit_of_their_own(store: Store) -> None:
    ada = await store.users.create("ada", "hash", "staff")
    assert ada is not None
    assert ada.max_requests is None
    for most in (5, 0, None):
        await store.users.set_max_requests(ada.id, most)
        found = await store.users.get(ada.id)
        assert found is not None
        assert found.max_requests == most
