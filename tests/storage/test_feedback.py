from datetime import timedelta

from storage import Store
from tests.storage.making import NOON, a_person, an_exchange, delete_before


async def test_an_answer_is_rated_then_otherwise_then_not_at_all(store: Store) -> None:
    ada = await a_person(store)
    asked = an_exchange(person=ada.id)
    await store.exchanges.record(asked)
    assert await store.feedback.of([asked.id]) == {}

    assert await store.feedback.set(asked.id, ada.id, 1)
    given = (await store.feedback.of([asked.id]))[asked.id]
    assert (given.rating, given.reason, given.comment, given.user_id) == (1, "", "", ada.id)

    assert await store.feedback.set(asked.id, ada.id, -1, reason="incorrect", comment="WAL 不是那样\0的")
    changed = (await store.feedback.of([asked.id]))[asked.id]
    assert (changed.rating, changed.reason, changed.comment) == (-1, "incorrect", "WAL 不是那样\ufffd的")
    assert changed.at >= given.at

    assert await store.feedback.remove(asked.id, ada.id)
    assert not await store.feedback.remove(asked.id, ada.id)
    assert await store.feedback.of([asked.id]) == {}


async def test_only_who_has_asked_may_rate_or_take_back(store: Store) -> None:
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    asked, by_operator = an_exchange(person=ada.id), an_exchange(person=None)
    for exchange in (asked, by_operator):
        await store.exchanges.record(exchange)
    assert not await store.feedback.set(asked.id, bob.id, -1)
    assert not await store.feedback.set(by_operator.id, bob.id, -1)
    assert not await store.feedback.set("no such exchange", ada.id, 1)
    assert await store.feedback.set(asked.id, ada.id, 1)
    assert not await store.feedback.remove(asked.id, bob.id)
    assert list(await store.feedback.of([asked.id, by_operator.id])) == [asked.id]


async def test_one_finds_all_that_one_has_rated_and_nobody_elses(store: Store) -> None:
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    asked = [an_exchange(f"question {number}", person=ada.id) for number in range(600)]
    for exchange in asked:
        await store.exchanges.record(exchange)
    for exchange in asked[:3]:
        await store.feedback.set(exchange.id, ada.id, -1)
    assert [each.exchange_id for each in await store.feedback.list(ada.id)] == [each.id for each in asked[2::-1]]
    assert await store.feedback.list(bob.id) == []
    assert set(await store.feedback.of(each.id for each in asked)) == {each.id for each in asked[:3]}


async def test_retention_takes_it_with_its_exchange(store: Store) -> None:
    ada = await a_person(store)
    old, new = an_exchange(person=ada.id), an_exchange(person=ada.id, queued_at=NOON + timedelta(days=30))
    for exchange in (old, new):
        await store.exchanges.record(exchange)
        await store.feedback.set(exchange.id, ada.id, 1)
    assert await delete_before(store, NOON + timedelta(days=1)) == 1
    assert [each.exchange_id for each in await store.feedback.list(ada.id)] == [new.id]
