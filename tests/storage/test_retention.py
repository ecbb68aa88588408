from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from engine.types import Status
from storage import Store
from storage.deleting import Due
from storage.records import ExchangeFilter
from storage.retention import Days
from tests.storage.making import NOON, a_person, an_exchange, delete_before, fill

LATER = NOON + timedelta(days=30)


async def test_what_is_old_and_ended_is_deleted(store: Store, url: str) -> None:
    old = [an_exchange("old", queued_at=NOON + timedelta(seconds=number)) for number in range(1201)]
    new, running = an_exchange("new", queued_at=LATER), an_exchange("running", status=Status.RUNNING)
    fill(url, [*old, new, running])
    assert await delete_before(store, LATER) == 1201
    assert await delete_before(store, LATER) == 0
    rows = (await store.exchanges.search(ExchangeFilter())).items
    assert [row.prompt for row in rows] == ["new", "running"]
    assert (await store.exchanges.search(ExchangeFilter(text="old"))).items == []


async def test_a_conversation_without_exchanges_goes_and_a_used_one_stays(store: Store) -> None:
    ada = await a_person(store)
    gone = await store.conversations.create(ada.id, title="secret title", system_prompt="secret")
    kept = await store.conversations.create(ada.id, title="kept")
    old = [an_exchange(person=ada.id, conversation_id=each.id) for each in (gone, kept)]
    new = an_exchange(person=ada.id, conversation_id=kept.id, parent_id=old[1].id, queued_at=LATER)
    for exchange in [*old, new]:
        await store.exchanges.record(exchange)
    await store.conversations.set_head(kept.id, ada.id, old[1].id)
    assert await delete_before(store, datetime.now(UTC) + timedelta(days=1)) == 3
    await store.exchanges.record(new)

    assert await store.conversations.get(gone.id, ada.id) is None
    assert await store.conversations.search(ada.id, "secret") == []
    late = an_exchange(person=ada.id, conversation_id=gone.id)
    await store.exchanges.record(late)  # from a page that was forgotten open
    assert await store.exchanges.conversation(gone.id) == [late]
    assert await store.exchanges.conversation(kept.id) == [new]


async def test_a_conversation_whose_shown_branch_was_deleted_shows_none(store: Store) -> None:
    ada = await a_person(store)
    plan = await store.conversations.create(ada.id, title="plan")
    old = an_exchange(person=ada.id, conversation_id=plan.id)
    new = an_exchange(person=ada.id, conversation_id=plan.id, queued_at=LATER)
    for exchange in (old, new):
        await store.exchanges.record(exchange)
    await store.conversations.set_head(plan.id, ada.id, old.id)
    assert await delete_before(store, LATER) == 1
    shown = await store.conversations.get(plan.id, ada.id)
    assert shown is not None
    assert (shown.title, shown.head_id) == ("plan", None)


@pytest.mark.parametrize("rows", [1, 3, 100])  # so few that the index does not tidy itself, and many
async def test_deleted_text_is_nowhere_in_the_files(sqlite_store: Store, file: Path, rows: int) -> None:
    """Neither in the rows, nor in the index, nor in the free pages, nor in the write-ahead log."""
    secret = "xylophonequartzgambit"
    for number in range(rows):
        await sqlite_store.exchanges.record(an_exchange(f"{secret} {number}", f"一二三 {secret}"))
    await sqlite_store.exchanges.record(an_exchange("kept forever", queued_at=LATER))
    assert left_in_files(file, secret)
    assert left_in_files(file, "一二三")
    assert await delete_before(sqlite_store, LATER) == rows
    assert not left_in_files(file, secret)
    assert not left_in_files(file, "一二三")  # three characters are a term of the index
    assert "qua" not in terms(file)
    assert "for" in terms(file)


def left_in_files(file: Path, text: str) -> bool:
    return any(text.encode() in piece.read_bytes() for piece in file.parent.glob(f"{file.name}*"))


def terms(file: Path) -> set[str]:
    """The trigrams that the index holds."""
    engine = sa.create_engine(f"sqlite:///{file}", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql("CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'exchanges_search', 'row')")
        return set(connection.exec_driver_sql("SELECT term FROM terms").scalars())


async def test_days_are_by_kind_and_a_dry_run_tells_what_would_go(store: Store) -> None:
    for number in range(5):
        await store.exchanges.record(an_exchange(queued_at=NOON + timedelta(days=number)))
    await store.audit.add("ada", "review.open")
    now = NOON + timedelta(days=10)
    days: Days = {"exchanges": 8, "audit": 0, "samples": 0}
    plan = await store.retention.plan(days, now)
    assert (plan["exchanges"], plan["audit"]) == (Due(2), Due(0))
    assert len((await store.exchanges.search(ExchangeFilter())).items) == 5
    assert (await store.retention.enforce(days, now))["exchanges"] == 2
    assert len((await store.exchanges.search(ExchangeFilter())).items) == 3

    far = datetime.now(UTC) + timedelta(days=3)
    assert (await store.retention.plan({"audit": 2}, far))["audit"] == Due(1)
    assert (await store.retention.enforce({"audit": 2}, far)) == {"exchanges": 0, "audit": 1, "samples": 0}
    assert (await store.audit.list()).items == []


async def test_what_is_held_stays_until_it_is_released(store: Store) -> None:
    ada, bob = await a_person(store), await a_person(store, "bob")
    talk = await store.conversations.create(ada.id)
    kept = an_exchange("kept")
    again = an_exchange("run again", source="review", parent_id=kept.id)
    in_talk = an_exchange("in the conversation", person=ada.id, conversation_id=talk.id)
    of_bob, free = an_exchange("of bob", person=bob.id), an_exchange("free")
    for exchange in (kept, again, in_talk, of_bob, free):
        await store.exchanges.record(exchange)
    await store.retention.hold("exchange", kept.id, reason="case 7", by="otto")
    await store.retention.hold("conversation", talk.id, reason="", by="otto")
    await store.retention.hold("person", bob.id, reason="", by="otto")
    days: Days = {"exchanges": 1}
    assert (await store.retention.plan(days, LATER))["exchanges"] == Due(1, held=4)
    assert (await store.retention.enforce(days, LATER))["exchanges"] == 1
    assert await store.erasures.erase(bob.id) == 0
    assert await store.exchanges.get(free.id) is None
    assert {hold.reason for hold in await store.retention.holds()} == {"case 7", ""}
    assert await store.retention.release("exchange", kept.id)
    assert not await store.retention.release("exchange", kept.id)
    assert (await store.retention.enforce(days, LATER))["exchanges"] == 2


async def test_totals_survive_deleting(store: Store) -> None:
    ada = await a_person(store)
    for day in range(3):
        await store.exchanges.record(
            an_exchange(person=ada.id, completion_tokens=10 + day, queued_at=NOON + timedelta(days=day))
        )
    await store.exchanges.record(an_exchange())
    before = await store.exchanges.usage(NOON - timedelta(days=1))
    assert before == {ada.id: (3, 33)}
    assert await delete_before(store, NOON + timedelta(days=1.5)) == 3
    assert await store.exchanges.usage(NOON - timedelta(days=1)) == before
    assert await store.exchanges.usage(NOON + timedelta(days=1)) == {ada.id: (2, 23)}


async def test_a_persons_data_is_erased_from_the_files(sqlite_store: Store, file: Path) -> None:
    """With what reviewers wrote about it and ran again; other people's stays."""
    store, secret, noted = sqlite_store, "quixoticmarzipan", "notesecretkumquat"
    ada, rita = await a_person(store), await a_person(store, "rita")
    talk = await store.conversations.create(ada.id, title=secret, system_prompt=secret)
    hers = an_exchange(secret, f"一二三 {secret}", person=ada.id, conversation_id=talk.id)
    again = an_exchange(secret, secret, person=rita.id, source="review", parent_id=hers.id)
    other = an_exchange("somebody else's", person=rita.id)
    for exchange in (hers, again, other):
        await store.exchanges.record(exchange)
    await store.reviews.add_note(hers.id, noted, rita.id)
    await store.reviews.correct(hers.id, noted)
    await store.reviews.label(hers.id, "labelpistachio", rita.id)
    await store.feedback.set(hers.id, ada.id, -1, comment="commentbergamot")
    words = [secret, "一二三", noted, "labelpistachio", "commentbergamot"]
    assert all(left_in_files(file, word) for word in words)
    assert await store.erasures.plan(ada.id) == Due(2)
    assert await store.erasures.erase(ada.id) == 2
    assert [word for word in words if left_in_files(file, word)] == []
    assert "qui" not in terms(file)
    assert await store.exchanges.get(other.id) == other
    assert (await store.exchanges.usage(NOON))[ada.id] == (1, 6)
