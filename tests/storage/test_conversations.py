from dataclasses import replace

import pytest

from engine.types import Message, Sampling
from storage import Store
from tests.storage.making import NOON, a_person, an_exchange


async def test_a_conversation_keeps_what_it_was_made_with(store: Store) -> None:
    ada = await a_person(store)
    sampling = Sampling(temperature=0, stop=("a", "句号"), seed=-(2**63))
    made = await store.conversations.create(ada.id, title="计划", system_prompt="Be kind.", sampling=sampling)
    assert (made.title, made.system_prompt, made.sampling, made.head_id) == ("计划", "Be kind.", sampling, None)
    assert await store.conversations.get(made.id, ada.id) == made
    assert await store.conversations.rename(made.id, ada.id, "Plan")
    assert await store.conversations.configure(made.id, ada.id, system_prompt=None, sampling=None)
    changed = replace(made, title="Plan", titled=True, system_prompt=None, sampling=None)
    assert await store.conversations.get(made.id, ada.id) == changed


async def test_a_conversation_is_a_tree_of_exchanges(store: Store) -> None:
    ada = await a_person(store)
    plan = await store.conversations.create(ada.id)
    root = an_exchange("one", person=ada.id, conversation_id=plan.id)
    left, right = (
        an_exchange(text, person=ada.id, conversation_id=plan.id, parent_id=root.id, queued_at=NOON.replace(minute=n))
        for n, text in enumerate(("left", "right"), start=1)
    )
    for exchange in (right, root, left, an_exchange("elsewhere", person=ada.id)):
        await store.exchanges.record(exchange)
    assert await store.conversations.exchanges(plan.id, ada.id) == [root, left, right]
    assert await store.conversations.set_head(plan.id, ada.id, left.id)
    shown = await store.conversations.get(plan.id, ada.id)
    assert shown is not None
    assert shown.head_id == left.id
    assert shown.updated_at > plan.updated_at


async def test_nobody_sees_or_changes_anothers_conversation(store: Store) -> None:
    ada, eve = await a_person(store, "ada"), await a_person(store, "eve")
    plan = await store.conversations.create(ada.id, title="secret plan")
    await store.exchanges.record(an_exchange("secret", person=ada.id, conversation_id=plan.id))
    talk = store.conversations
    assert await talk.get(plan.id, eve.id) is None
    assert (await talk.list(eve.id)).items == []
    assert await talk.exchanges(plan.id, eve.id) == []
    assert await talk.search(eve.id, "secret") == []
    assert not await talk.rename(plan.id, eve.id, "mine")
    assert not await talk.configure(plan.id, eve.id, system_prompt="mine", sampling=None)
    assert not await talk.set_head(plan.id, eve.id, "0" * 32)
    assert not await talk.delete(plan.id, eve.id)
    assert await talk.delete(plan.id, ada.id)
    assert not await talk.restore(plan.id, eve.id)
    assert await talk.restore(plan.id, ada.id)
    assert await talk.get(plan.id, ada.id) == plan


async def test_a_deleted_conversation_is_gone_for_its_owner_and_stays_for_reviewers(store: Store) -> None:
    ada = await a_person(store)
    plan = await store.conversations.create(ada.id, title="secret plan")
    exchange = an_exchange("secret", person=ada.id, conversation_id=plan.id)
    await store.exchanges.record(exchange)
    assert await store.conversations.delete(plan.id, ada.id)
    assert await store.conversations.get(plan.id, ada.id) is None
    assert (await store.conversations.list(ada.id)).items == []
    assert await store.conversations.exchanges(plan.id, ada.id) == []
    assert await store.conversations.search(ada.id, "secret") == []
    assert not await store.conversations.rename(plan.id, ada.id, "again")
    assert not await store.conversations.delete(plan.id, ada.id)
    assert await store.exchanges.conversation(plan.id) == [exchange]
    assert await store.conversations.restore(plan.id, ada.id)
    assert not await store.conversations.restore(plan.id, ada.id)
    assert await store.conversations.exchanges(plan.id, ada.id) == [exchange]


async def test_the_conversation_used_last_comes_first_and_paging_misses_none(store: Store) -> None:
    ada = await a_person(store)
    made = [await store.conversations.create(ada.id, title=str(number)) for number in range(12)]
    await store.conversations.set_head(made[3].id, ada.id, "0" * 32)
    titles, cursor = [], None
    while True:
        piece = await store.conversations.list(ada.id, limit=5, cursor=cursor)
        titles += [conversation.title for conversation in piece.items]
        if (cursor := piece.next) is None:
            break
    assert titles == ["3", "11", "10", "9", "8", "7", "6", "5", "4", "2", "1", "0"]
    with pytest.raises(ValueError, match="is not a cursor of this list"):
        await store.conversations.list(ada.id, cursor="nonsense")


async def test_search_finds_titles_and_text_of_two_characters_with_a_snippet(store: Store) -> None:
    ada = await a_person(store)
    weather = await store.conversations.create(ada.id, title="Shanghai")
    trip = await store.conversations.create(ada.id, title="天气 and trips")
    other = await store.conversations.create(ada.id, title="other")
    answer = "x" * 300 + " 上海今天\n天气很好 " + "y" * 300
    await store.exchanges.record(an_exchange("How is it?", answer, person=ada.id, conversation_id=weather.id))
    await store.exchanges.record(an_exchange("no", "no", person=ada.id, conversation_id=other.id))

    hits = await store.conversations.search(ada.id, "天气")
    assert [hit.conversation.title for hit in hits] == ["天气 and trips", "Shanghai"]
    assert hits[0].snippet == ""
    assert hits[1].snippet == "…" + "x" * 34 + " 上海今天 天气很好 " + "y" * 37 + "…"

    assert [hit.conversation for hit in await store.conversations.search(ada.id, "SHANG")] == [weather]
    assert [hit.conversation for hit in await store.conversations.search(ada.id, "how 很好")] == [weather]
    assert [hit.conversation for hit in await store.conversations.search(ada.id, "trips 天气")] == [trip]
    assert await store.conversations.search(ada.id, "") == []
    assert await store.conversations.search(ada.id, "%") == []
    assert len(await store.conversations.search(ada.id, "天气", limit=1)) == 1


async def test_search_shows_the_newest_of_several_hits_in_one_conversation(store: Store) -> None:
    ada = await a_person(store)
    plan = await store.conversations.create(ada.id)
    for text in ("old hit", "new hit", "miss"):
        await store.exchanges.record(
            an_exchange("q", messages=(Message("user", text),), person=ada.id, conversation_id=plan.id)
        )
    assert [hit.snippet for hit in await store.conversations.search(ada.id, "hit")] == ["new hit"]
