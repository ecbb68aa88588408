from pathlib import Path

from engine.types import Message, Sampling, Status
from storage import Store
from storage.records import ExchangeFilter
from tests.storage.making import a_person, an_exchange
from tests.storage.test_retention import left_in_files, terms

SECRET = "xylophonequartzgambit"


async def test_a_request_hides_the_conversations_and_waits_for_an_administrator(store: Store) -> None:
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    plan = await store.conversations.create(ada.id, title="plan")
    kept = await store.conversations.create(bob.id, title="bob's plan")
    asked = an_exchange(person=ada.id, conversation_id=plan.id)
    await store.exchanges.record(asked)
    await store.erasures.request(ada.id)
    await store.erasures.request(ada.id)
    (waiting,) = await store.erasures.waiting()
    assert (waiting.user_id, waiting.user_name) == (ada.id, "ada")
    assert await store.conversations.get(plan.id, ada.id) is None
    assert await store.conversations.get(kept.id, bob.id) == kept
    assert await store.exchanges.get(asked.id) == asked  # reviewers still find it

    await store.erasures.withdraw(ada.id)
    assert await store.erasures.waiting() == []


async def test_what_is_erased_has_no_text_anywhere_but_still_counts(sqlite_store: Store, file: Path) -> None:
    store = sqlite_store
    ada, bob = await a_person(store, "ada"), await a_person(store, "bob")
    plan = await store.conversations.create(ada.id, title=SECRET, system_prompt=SECRET, sampling=Sampling(stop=("完",)))
    mine = an_exchange(
        SECRET,
        f"一二三 {SECRET}",
        person=ada.id,
        conversation_id=plan.id,
        messages=(Message("system", SECRET), Message("user", SECRET)),
        sampling=Sampling(stop=(SECRET,)),
        error=SECRET,
    )
    by_key = an_exchange(SECRET, person=ada.id, source="api")
    bobs, running = an_exchange("bob's", person=bob.id), an_exchange("running", person=ada.id, status=Status.RUNNING)
    for exchange in (mine, by_key, bobs, running):
        await store.exchanges.record(exchange)
    await store.conversations.set_head(plan.id, ada.id, mine.id)
    await store.feedback.set(mine.id, ada.id, -1, comment=SECRET)
    await store.templates.create(ada.id, SECRET, SECRET)
    await store.users.set_defaults(ada.id, system_prompt=SECRET, sampling=None)
    await store.erasures.request(ada.id)
    assert left_in_files(file, SECRET)

    assert await store.erasures.erase(ada.id) == 2
    assert not left_in_files(file, SECRET)
    assert not left_in_files(file, "一二三")
    assert "qua" not in terms(file)
    assert await store.exchanges.get(mine.id) is None
    assert (await store.exchanges.usage(mine.queued_at))[ada.id][0] == 3  # what is deleted still counts
    assert await store.exchanges.get(bobs.id) == bobs
    assert await store.exchanges.get(running.id) == running
    assert (await store.exchanges.search(ExchangeFilter(text="quartz"))).items == []
    assert await store.feedback.list(ada.id) == []
    assert await store.templates.list(ada.id) == []
    assert await store.erasures.waiting() == []
    assert await store.users.defaults(ada.id) == (None, None)
    assert await store.erasures.erase(ada.id) == 0
