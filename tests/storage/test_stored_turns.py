"""What people do with the turns of a conversation and with their list: removing, forking, shelves, bringing in."""

from datetime import timedelta

from engine.types import Exchange, Sampling
from storage import Store
from storage.records import ExchangeFilter, User
from tests.storage.making import NOON, a_person, an_exchange, delete_before


async def a_tree(store: Store, person: User) -> tuple[str, list[Exchange]]:
    """a - b - d, and c beside b; asked in the order of the alphabet."""
    plan = await store.conversations.create(person.id, title="plan", system_prompt="Be kind.")
    made: dict[str, Exchange] = {}
    for minute, (name, parent) in enumerate([("a", ""), ("b", "a"), ("c", "a"), ("d", "b")]):
        made[name] = an_exchange(
            f"question-{name}",
            person=person.id,
            conversation_id=plan.id,
            parent_id=made[parent].id if parent else None,
            queued_at=NOON + timedelta(minutes=minute),
        )
        await store.exchanges.record(made[name])
    return plan.id, list(made.values())


async def test_a_removed_turn_takes_what_follows_and_comes_back_whole(store: Store) -> None:
    ada = await a_person(store)
    plan, (a, b, c, d) = await a_tree(store, ada)
    assert await store.turns.remove(plan, ada.id, b.id, c.id)
    assert await store.conversations.exchanges(plan, ada.id) == [a, c]
    assert await store.conversations.search(ada.id, "question-d") == []
    shown = await store.conversations.get(plan, ada.id)
    assert shown is not None
    assert shown.head_id == c.id
    assert await store.exchanges.conversation(plan) == [a, b, c, d], "reviewers still see it"
    assert len((await store.exchanges.search(ExchangeFilter(text="question-d"))).items) == 1
    assert not await store.turns.remove(plan, ada.id, b.id, None), "it is removed already"
    assert await store.turns.restore(plan, ada.id, b.id, d.id)
    assert await store.conversations.exchanges(plan, ada.id) == [a, b, c, d]
    assert not await store.turns.restore(plan, ada.id, b.id, d.id)


async def test_undoing_one_removal_leaves_another_as_it_is(store: Store) -> None:
    ada = await a_person(store)
    plan, (a, b, c, d) = await a_tree(store, ada)
    assert await store.turns.remove(plan, ada.id, d.id, b.id)
    assert await store.turns.remove(plan, ada.id, b.id, c.id)
    assert await store.turns.restore(plan, ada.id, b.id, b.id)
    assert await store.conversations.exchanges(plan, ada.id) == [a, b, c]


async def test_a_fork_begins_alike_and_goes_its_own_way(store: Store) -> None:
    ada = await a_person(store)
    plan, (a, b, c, d) = await a_tree(store, ada)
    fork = await store.turns.fork(plan, ada.id, b.id, "plan B")
    assert fork is not None
    begun = await store.conversations.get(fork, ada.id)
    assert begun is not None
    assert (begun.title, begun.system_prompt, begun.head_id) == ("plan B", "Be kind.", b.id)
    assert await store.conversations.exchanges(fork, ada.id) == [a, b]

    later = an_exchange("only here", person=ada.id, conversation_id=fork, parent_id=b.id)
    await store.exchanges.record(later)
    assert await store.turns.remove(fork, ada.id, b.id, a.id)
    assert await store.conversations.exchanges(fork, ada.id) == [a]
    assert await store.conversations.exchanges(plan, ada.id) == [a, b, c, d], "the first one is as it was"
    assert await store.turns.restore(fork, ada.id, b.id, later.id)
    assert await store.conversations.delete(plan, ada.id)
    assert await store.conversations.exchanges(fork, ada.id) == [a, b, later]
    assert await store.exchanges.conversation(fork) == [a, b, later]


async def test_a_fork_is_found_by_what_stands_above_its_branching(store: Store) -> None:
    ada, eve = await a_person(store), await a_person(store, "eve")
    plan, (a, b, _, _) = await a_tree(store, ada)
    fork = await store.turns.fork(plan, ada.id, b.id, "plan B")
    assert fork is not None
    later = an_exchange("only here", person=ada.id, conversation_id=fork, parent_id=b.id)
    await store.exchanges.record(later)
    second = await store.turns.fork(fork, ada.id, later.id, "plan C")
    assert second is not None

    async def found(text: str) -> set[str]:
        return {hit.conversation.id for hit in await store.conversations.search(ada.id, text)}

    assert await found("question-a") == {plan, fork, second}
    assert await found("question-c") == await found("question-d") == {plan}, "not above the branching"
    assert await found("only here") == {fork, second}
    assert {hit.snippet for hit in await store.conversations.search(ada.id, "question-b")} == {"question-b"}
    assert await store.conversations.search(eve.id, "question-a") == []
    assert await store.turns.remove(fork, ada.id, b.id, a.id)
    assert await found("question-b") == {plan, second}, "what was removed from one conversation stands in the others"
    assert await store.conversations.delete(plan, ada.id)
    assert await found("question-a") == {fork, second}


async def test_a_fork_whose_beginning_retention_took_has_the_rest(store: Store) -> None:
    ada = await a_person(store)
    plan, (a, b, _, d) = await a_tree(store, ada)
    fork = await store.turns.fork(plan, ada.id, d.id, "plan B")
    assert fork is not None
    assert await store.turns.remove(fork, ada.id, d.id, b.id)
    await delete_before(store, a.queued_at + timedelta(seconds=1))
    assert await store.conversations.exchanges(fork, ada.id) == [b]


async def test_turns_are_nobody_elses_to_touch(store: Store) -> None:
    ada, eve = await a_person(store), await a_person(store, "eve")
    plan, (a, b, _, _) = await a_tree(store, ada)
    own = await store.conversations.create(eve.id)
    assert not await store.turns.remove(plan, eve.id, b.id, None)
    assert not await store.turns.remove(own.id, eve.id, b.id, None), "not an exchange of this conversation"
    assert await store.turns.fork(plan, eve.id, b.id, "mine") is None
    assert await store.turns.fork(own.id, eve.id, b.id, "mine") is None
    assert await store.turns.remove(plan, ada.id, b.id, a.id)
    assert not await store.turns.restore(plan, eve.id, b.id, b.id)
    for talk in (store.conversations.pin, store.conversations.archive):
        assert not await talk(plan, eve.id, True)
    assert not await store.conversations.move(plan, eve.id, "mine")
    assert not await store.conversations.entitle(plan, eve.id, "mine")
    assert await store.conversations.rename_folder(eve.id, "", "mine") == 0


async def test_each_conversation_is_on_one_shelf(store: Store) -> None:
    ada = await a_person(store)
    made = {name: (await store.conversations.create(ada.id, title=name)).id for name in ("new", "pin", "work", "old")}
    assert await store.conversations.pin(made["pin"], ada.id, True)
    assert await store.conversations.move(made["work"], ada.id, "工作")
    assert await store.conversations.archive(made["old"], ada.id, True)
    assert await store.conversations.pin(made["old"], ada.id, True)

    async def on(shelf: str | None) -> set[str]:
        page = await store.conversations.list(ada.id, shelf=shelf)  # type: ignore[arg-type]  # the names below
        return {conversation.title for conversation in page.items}

    assert await on("recent") == {"new"}
    assert await on("kept") == {"pin", "work"}
    assert await on("archived") == {"old"}
    assert await on(None) == set(made)
    assert await store.conversations.rename_folder(ada.id, "工作", "Arbeit") == 1
    work = await store.conversations.get(made["work"], ada.id)
    assert work is not None
    assert work.folder == "Arbeit"
    assert await store.conversations.rename_folder(ada.id, "Arbeit", "") == 1
    assert await store.conversations.archive(made["old"], ada.id, False)
    assert await on("recent") == {"new", "work"}


async def test_looking_at_another_version_does_not_move_a_conversation_up(store: Store) -> None:
    ada = await a_person(store)
    plan, (_, b, _, _) = await a_tree(store, ada)
    before = await store.conversations.get(plan, ada.id)
    assert before is not None
    assert await store.conversations.set_head(plan, ada.id, b.id, used=False)
    after = await store.conversations.get(plan, ada.id)
    assert after is not None
    assert (after.head_id, after.updated_at) == (b.id, before.updated_at)


async def test_the_models_title_never_replaces_a_persons(store: Store) -> None:
    ada = await a_person(store)
    plan = await store.conversations.create(ada.id, title="How do I ...")
    assert await store.conversations.entitle(plan.id, ada.id, "A plan")
    assert not await store.conversations.entitle(plan.id, ada.id, "Another plan")
    other = await store.conversations.create(ada.id, title="What is ...")
    assert await store.conversations.rename(other.id, ada.id, "Mine")
    assert not await store.conversations.entitle(other.id, ada.id, "Not mine")


async def test_what_is_brought_in_is_marked_and_counts_for_nothing(store: Store) -> None:
    ada, eve = await a_person(store), await a_person(store, "eve")
    foreign = an_exchange("old question", person=eve.id, source="page", queued_at=NOON, completion_tokens=500)
    id = await store.conversations.take_in(
        ada.id, [foreign], title="Brought", updated_at=NOON, sampling=Sampling(temperature=0), head_id=foreign.id
    )
    (brought,) = await store.conversations.exchanges(id, ada.id)
    assert (brought.person, brought.source, brought.conversation_id) == (ada.id, "import", id)
    kept = await store.conversations.get(id, ada.id)
    assert kept is not None
    assert (kept.title, kept.updated_at, kept.head_id) == ("Brought", NOON, foreign.id)
    assert kept.sampling == Sampling(temperature=0)
    assert await store.exchanges.usage(NOON - timedelta(days=1)) == {}
    assert [row.source for row in (await store.exchanges.search(ExchangeFilter(source="import"))).items] == ["import"]
    assert [hit.conversation.id for hit in await store.conversations.search(ada.id, "old question")] == [id]
    assert await delete_before(store, NOON + timedelta(days=1)) == 1
    assert await store.exchanges.usage(NOON - timedelta(days=1)) == {}, "nor once it is deleted"
