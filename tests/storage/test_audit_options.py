from pathlib import Path

import pytest

from storage import Store, audit
from tests.storage.making import a_person, an_exchange


async def test_entries_are_listed_newest_first_and_by_piece(store: Store) -> None:
    for number in range(25):
        await store.audit.add("ada", "review.open", f"exchange {number}", "because")
    first = await store.audit.list(limit=10)
    assert [entry.target for entry in first.items] == [f"exchange {number}" for number in range(24, 14, -1)]
    assert (first.items[0].actor, first.items[0].detail) == ("ada", "because")
    await store.audit.add("ada", "review.open", "came in meanwhile")
    second = await store.audit.list(limit=10, cursor=first.next)
    third = await store.audit.list(limit=10, cursor=second.next)
    assert [entry.target for entry in third.items] == [f"exchange {number}" for number in range(4, -1, -1)]
    assert third.next is None


async def test_entries_are_found_by_actor_and_by_the_beginning_of_the_action(store: Store) -> None:
    for actor, action in (("ada", "review.open"), ("bob", "review.search"), ("ada", "user.create"), ("", "r%view.x")):
        await store.audit.add(actor, action)
    assert [entry.action for entry in (await store.audit.list(action="review.")).items] == [
        "review.search",
        "review.open",
    ]
    assert [entry.action for entry in (await store.audit.list(actor="ada")).items] == ["user.create", "review.open"]
    assert [entry.action for entry in (await store.audit.list(action="r%v")).items] == ["r%view.x"]
    assert (await store.audit.list(action="user.create", actor="bob")).items == []


@pytest.mark.parametrize("cursor", ["", "x", "W10=", "WyJ4Il0=", "e30=", "WzFd", "é", "A" * 5000])
async def test_what_is_not_a_cursor_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(ValueError, match="is not a cursor of this list"):
        await store.audit.list(cursor=cursor)


async def test_options_are_kept_and_replaced(store: Store) -> None:
    assert await store.options.get("limits") is None
    await store.options.set("limits", "10")
    await store.options.set("limits", "20")
    await store.options.set("banner", "午饭时间")
    assert await store.options.get("limits") == "20"
    assert await store.options.get("banner") == "午饭时间"


async def test_a_person_sees_who_opened_what_they_had_asked(store: Store) -> None:
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    plan = await store.conversations.create(ada.id, title="plan")
    first = an_exchange("first", person=ada.id, conversation_id=plan.id)
    by_key, bobs = an_exchange("by key", person=ada.id, source="api"), an_exchange("bob's", person=bob.id)
    for exchange in (first, by_key, bobs):
        await store.exchanges.record(exchange)
    await store.audit.add("rita", "review.open", first.id)
    await store.audit.add("root", "request.open", by_key.id)
    await store.audit.add("rita", "review.open", bobs.id)
    await store.audit.add("ada", "review.open", first.id)  # her own look at it
    await store.audit.add("rita", "review.search", first.id)  # found, not opened
    found = [(each.reader, each.title, each.prompt) for each in await store.audit.readings(ada.id)]
    assert found == [("root", "", "by key"), ("rita", "plan", "first")]
    assert len(await store.audit.readings(ada.id, limit=1)) == 1


async def test_entries_are_found_by_time_and_the_server_has_no_name(store: Store) -> None:
    await store.audit.add("ada", "user.create", "first")
    await store.audit.add("", "retention.run", "second")
    (second,), (first, _) = (await store.audit.list(actor="")).items, (await store.audit.list()).items[::-1]
    assert (first.target, second.target) == ("first", "second")
    assert (await store.audit.list(since=second.at)).items == [second]
    assert (await store.audit.list(until=second.at)).items == [first]


def test_no_code_changes_or_deletes_entries() -> None:
    """Append-only: the row is known to its own file and to the schema, and that file inserts and selects alone."""
    storage = Path(audit.__file__).parent
    knowing = {path.name for path in storage.rglob("*.py") if "AuditRow" in path.read_text(encoding="utf-8")}
    assert knowing - {"retention.py"} == {"audit.py", "server.py", "__init__.py"}
    source = Path(audit.__file__).read_text(encoding="utf-8")
    assert not [word for word in ("sa.update", "sa.delete", "session.delete", "session.merge") if word in source]
    assert {name for name in vars(audit.Audit) if not name.startswith("_")} == {"add", "list", "readings"}
