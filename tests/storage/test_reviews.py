"""What reviewers do with exchanges, and the lists that come of it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import storage.listing
from engine.types import Exchange, ExchangeFilter, Status
from storage import Store
from tests.storage.making import NOON, a_person, an_exchange


async def recorded(store: Store, prompt: str = "What is WAL?", **values: Any) -> Exchange:
    exchange = an_exchange(prompt, **values)
    await store.exchanges.record(exchange)
    return exchange


async def prompts(store: Store, filter: ExchangeFilter) -> list[str]:
    return [row.prompt for row in (await store.exchanges.search(filter)).items]


async def test_labels_are_given_once_suggested_by_use_and_taken_away(store: Store) -> None:
    rita, one, two = await a_person(store, "rita"), await recorded(store), await recorded(store)
    assert await store.reviews.label(one.id, "  wrong   facts ", rita.id)
    assert await store.reviews.label(one.id, "wrong facts", rita.id)
    assert await store.reviews.label(two.id, "wrong facts", rita.id)
    assert await store.reviews.label(two.id, "语气", rita.id)
    assert not await store.reviews.label(one.id, "  ", rita.id)
    assert not await store.reviews.label("nothing", "wrong facts", rita.id)
    assert await store.reviews.labels() == ["wrong facts", "语气"]
    assert (await store.reviews.of(two.id)).labels == ("wrong facts", "语气")
    assert await store.reviews.unlabel(two.id, "wrong facts")
    assert not await store.reviews.unlabel(two.id, "wrong facts")
    assert (await store.reviews.of(two.id)).labels == ("语气",)


async def test_notes_corrections_and_assigning_are_kept(store: Store) -> None:
    rita, otto, one = await a_person(store, "rita"), await a_person(store, "otto"), await recorded(store)
    assert await store.reviews.add_note(one.id, "Check the source.", rita.id)
    assert not await store.reviews.add_note(one.id, " ", rita.id)
    assert await store.reviews.correct(one.id, "A write-ahead log, 预写日志.")
    assert await store.reviews.assign(one.id, otto.id)
    review = await store.reviews.of(one.id)
    assert [(note.by, note.text) for note in review.notes] == [(rita.id, "Check the source.")]
    assert (review.correction, review.assignee, review.done_at) == ("A write-ahead log, 预写日志.", otto.id, None)
    assert not await store.reviews.remove_note(review.notes[0].id, otto.id)
    assert await store.reviews.remove_note(review.notes[0].id, rita.id)
    assert (await store.reviews.of(one.id)).notes == ()


async def test_counts_are_by_reviewer_and_by_label(store: Store) -> None:
    rita, otto = await a_person(store, "rita"), await a_person(store, "otto")
    for number in range(3):
        one = await recorded(store)
        await store.reviews.assign(one.id, otto.id)
        await store.reviews.label(one.id, "facts", rita.id)
        if number:
            await store.reviews.set_done(one.id, rita.id)
    counts = await store.reviews.counts()
    assert (counts.assigned, counts.done, counts.labels) == ({otto.id: 1}, {rita.id: 2}, {"facts": 3})


async def test_every_list_finds_its_own_and_combines_with_text(store: Store) -> None:
    ada, rita = await a_person(store), await a_person(store, "rita")
    bad = await recorded(store, "bad answer here", person=ada.id)
    await store.feedback.set(bad.id, ada.id, -1)
    good = await recorded(store, "good answer here", person=ada.id)
    await store.feedback.set(good.id, ada.id, 1)
    labelled = await recorded(store, "labelled here", model="another")
    await store.reviews.label(labelled.id, "tone", rita.id)
    await store.reviews.assign(labelled.id, rita.id)
    await recorded(store, "failed here", status=Status.FAILED)
    await recorded(store, "cut off here", finish_reason="length")
    await recorded(store, "waited here", started_at=NOON + timedelta(seconds=11))
    await recorded(store, "never began", started_at=None, finished_at=NOON + timedelta(seconds=20))
    await recorded(store, "run again here", source="review")
    finished = await recorded(store, "finished here")
    await store.reviews.set_done(finished.id, rita.id)
    for filter, expected in {
        ExchangeFilter(rating=-1): {"bad answer here"},
        ExchangeFilter(rating=1): {"good answer here"},
        ExchangeFilter(label="tone"): {"labelled here"},
        ExchangeFilter(model="another"): {"labelled here"},
        ExchangeFilter(assignee=rita.id): {"labelled here"},
        ExchangeFilter(cut_off=True): {"failed here", "cut off here"},
        ExchangeFilter(long_wait=True): {"waited here", "never began"},
        ExchangeFilter(reviewed=True): {"finished here"},
        ExchangeFilter(source="review"): {"run again here"},
        ExchangeFilter(reviewed=False, text="here", person=ada.id): {"bad answer here", "good answer here"},
        ExchangeFilter(cut_off=True, text="cut"): {"cut off here"},
        ExchangeFilter(label="tone", rating=-1): set(),
    }.items():
        assert set(await prompts(store, filter)) == expected, filter
    assert not {"run again here", "finished here"} & set(await prompts(store, ExchangeFilter(reviewed=False)))
    await store.reviews.set_done(labelled.id, rita.id)
    assert await prompts(store, ExchangeFilter(assignee=rita.id)) == []
    marks = await store.reviews.marks([bad.id, labelled.id, "nothing"])
    assert (marks[bad.id].rating, marks[labelled.id].labels, marks[labelled.id].done) == (-1, ("tone",), True)
    assert set(marks) == {bad.id, labelled.id}


@pytest.mark.parametrize("few", [storage.listing.FEW, -1])  # what a rating or a label leads to, or too much for that
async def test_all_filters_hold_together_and_each_leaves_out_what_it_must(
    store: Store, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One exchange fits all of them, and of each other field one does not."""
    monkeypatch.setattr(storage.listing, "FEW", few)
    ada, rita = await a_person(store), await a_person(store, "rita")
    fits: dict[str, Any] = {"person": ada.id, "started_at": NOON + timedelta(seconds=11), "finish_reason": "length"}
    whole = ExchangeFilter(
        person=ada.id,
        since=NOON,
        until=NOON + timedelta(minutes=1),
        status=Status.DONE,
        source="page",
        text="travel 报销",
        model="Qwen2-7B-Instruct",
        rating=-1,
        label="tone",
        assignee=rita.id,
        reviewed=False,
        cut_off=True,
        long_wait=True,
    )
    others: dict[str, dict[str, Any]] = {
        "since": {"queued_at": NOON - timedelta(seconds=1)},
        "until": {"queued_at": NOON + timedelta(minutes=1), "started_at": NOON + timedelta(minutes=2)},
        "status": {"status": Status.FAILED},
        "source": {"source": "api"},
        "model": {"model": "another"},
        "cut_off": {"finish_reason": "stop"},
        "long_wait": {"started_at": NOON + timedelta(seconds=1)},
    }
    asked = {"fits": await recorded(store, "travel 报销", **fits)}
    asked |= {name: await recorded(store, "travel 报销", **fits | other) for name, other in others.items()}
    asked["text"] = await recorded(store, "travel", **fits)
    for name in ("rating", "label", "assignee", "reviewed"):
        asked[name] = await recorded(store, "travel 报销", **fits)
    for name, one in asked.items():
        await store.feedback.set(one.id, ada.id, 1 if name == "rating" else -1)
        await store.reviews.label(one.id, "facts" if name == "label" else "tone", rita.id)
        await store.reviews.assign(one.id, ada.id if name == "assignee" else rita.id)
    await store.reviews.set_done(asked["reviewed"].id, rita.id)

    async def found(filter: ExchangeFilter) -> set[str]:
        ids = {row.id for row in (await store.exchanges.search(filter)).items}
        return {name for name, one in asked.items() if one.id in ids}

    assert await found(whole) == {"fits"}
    for name in others.keys() | {"text", "rating", "label", "assignee"}:
        assert await found(replace(whole, **{name: getattr(ExchangeFilter(), name)})) == {"fits", name}, name


async def test_what_ran_beside_an_exchange_overlaps_it_in_time(store: Store) -> None:
    one = await recorded(store, "this one")  # from noon, for four seconds
    await recorded(store, "before", queued_at=NOON - timedelta(seconds=10))
    await recorded(store, "overlapping its begin", queued_at=NOON - timedelta(seconds=2))
    await recorded(store, "overlapping its end", queued_at=NOON + timedelta(seconds=3))
    await recorded(store, "after", queued_at=NOON + timedelta(seconds=5))
    count, rows = await store.exchanges.beside(one, limit=1)
    assert (count, [row.prompt for row in rows]) == (2, ["overlapping its begin"])


async def test_others_like_an_exchange_share_its_rare_words(store: Store) -> None:
    one = await recorded(store, "How do I file a travel expense report?")
    await recorded(store, "Travel expense rules for taxis")
    await recorded(store, "What is the weather?")
    chinese = await recorded(store, "请问差旅报销流程是什么")
    await recorded(store, "差旅报销流程要多久")
    assert (await store.exchanges.like(one.id))[0].prompt == "Travel expense rules for taxis"
    assert [row.prompt for row in await store.exchanges.like(chinese.id)] == ["差旅报销流程要多久"]
    listed = [row.id for row in await store.exchanges.like(one.id)]
    assert [whole.id for whole in await store.exchanges.read_like(one.id)] == listed
    assert await store.exchanges.like("nothing") == []


async def test_reruns_are_found_by_what_they_ran_again(store: Store) -> None:
    one = await recorded(store)
    again = await recorded(store, source="review", parent_id=one.id)
    await recorded(store, source="page", parent_id=one.id)
    assert await store.exchanges.reruns(one.id) == [again]
