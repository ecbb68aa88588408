from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from engine.types import Status
from storage import Store
from storage.records import ExchangeFilter
from tests.storage.making import NOON, a_person, an_exchange, fill

LATER = NOON + timedelta(days=30)


async def test_what_is_old_and_ended_is_deleted(store: Store, url: str) -> None:
    old = [an_exchange("old", queued_at=NOON + timedelta(seconds=number)) for number in range(1201)]
    new, running = an_exchange("new", queued_at=LATER), an_exchange("running", status=Status.RUNNING)
    fill(url, [*old, new, running])
    assert await store.exchanges.delete_before(LATER) == 1201
    assert await store.exchanges.delete_before(LATER) == 0
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
    assert await store.exchanges.delete_before(datetime.now(UTC) + timedelta(days=1)) == 3
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
    assert await store.exchanges.delete_before(LATER) == 1
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
    assert await sqlite_store.exchanges.delete_before(LATER) == rows
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
