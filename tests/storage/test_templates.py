from storage import Store
from tests.storage.making import a_person


async def test_one_sees_ones_own_templates_and_the_shared_ones(store: Store) -> None:
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    own = await store.templates.create(ada.id, "translate", "Translate into {{language}}:")
    shared = await store.templates.create(bob.id, "Summarise", "Summarise this:", shared=True)
    await store.templates.create(bob.id, "bob's", "...")
    assert await store.templates.list(ada.id) == [shared, own]


async def test_nobody_changes_anothers_and_shared_ones_only_as_such(store: Store) -> None:
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    own = await store.templates.create(ada.id, "own", "text")
    shared = await store.templates.create(ada.id, "shared", "text", shared=True)
    for id, owner in ((own.id, bob.id), (own.id, None), (shared.id, ada.id), (shared.id, bob.id)):
        assert not await store.templates.change(id, owner, "changed", "changed")
        assert not await store.templates.remove(id, owner)
    assert await store.templates.list(ada.id) == [own, shared]

    assert await store.templates.change(own.id, ada.id, "mine", "new text")
    assert await store.templates.change(shared.id, None, "ours", "new text")
    assert [(each.name, each.text) for each in await store.templates.list(ada.id)] == [
        ("mine", "new text"),
        ("ours", "new text"),
    ]
    assert await store.templates.remove(own.id, ada.id)
    assert await store.templates.remove(shared.id, None)
    assert await store.templates.list(ada.id) == []
