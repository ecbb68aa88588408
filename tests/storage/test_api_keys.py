from storage import Store
from tests.storage.making import a_person


async def test_a_key_is_found_until_it_is_revoked(store: Store) -> None:
    ada = await a_person(store)
    key = await store.api_keys.create(ada.id, "laptop", "key hash", "qd-1234")
    assert (key.name, key.prefix, key.last_used_at) == ("laptop", "qd-1234", None)
    assert await store.api_keys.find("key hash") == (key, ada)
    await store.api_keys.seen(key.id)
    (listed,) = await store.api_keys.list(ada.id)
    assert listed.last_used_at is not None
    assert await store.api_keys.revoke(key.id, ada.id)
    assert not await store.api_keys.revoke(key.id, ada.id)
    assert await store.api_keys.find("key hash") is None
    assert await store.api_keys.list(ada.id) == []


async def test_nobody_sees_or_revokes_anothers_key(store: Store) -> None:
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    key = await store.api_keys.create(ada.id, "laptop", "key hash", "qd-1234")
    assert await store.api_keys.list(bob.id) == []
    assert not await store.api_keys.revoke(key.id, bob.id)
    assert await store.api_keys.find("key hash") == (key, ada)


async def test_the_key_of_a_disabled_account_does_not_work(store: Store) -> None:
    ada = await a_person(store)
    await store.api_keys.create(ada.id, "laptop", "key hash", "qd-1234")
    await store.users.set_disabled(ada.id, True)
    assert await store.api_keys.find("key hash") is None


async def test_everybodys_keys_are_listed_with_their_owners(store: Store) -> None:
    zoe, ada = await a_person(store, "zoe"), await a_person(store, "Ada")
    for owner, name in ((zoe, "script"), (ada, "older"), (ada, "newer")):
        await store.api_keys.create(owner.id, name, f"hash of {name}", "sk-qdesk-abcd")
    found = await store.api_keys.everybodys()
    assert [(owner.name, key.name) for key, owner in found] == [("Ada", "newer"), ("Ada", "older"), ("zoe", "script")]
