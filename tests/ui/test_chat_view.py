"""A chat page that goes while something of it is under way: nothing is opened or followed for it any more."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest
from nicegui import Client, core
from nicegui.page import page

from engine.errors import InvalidRequest
from engine.types import ChatRequest, Message, Status
from storage.records import Conversation, User
from tests.ui.exchanges import exchange
from ui import page_ends
from ui.auth import Visitor
from ui.components.chat_view import ChatView
from ui.components.composer import Composer
from ui.components.hub import Hub
from ui.components.preferences import Preferences
from ui.components.sidebar import Sidebar
from ui.components.thread import Thread
from ui.desk import Desk
from ui.i18n import language

SAY = language("en")


@pytest.fixture(autouse=True)
async def loop_of_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "loop", asyncio.get_running_loop())


@pytest.fixture
async def ada(desk: Desk) -> User:
    user = await desk.store.users.create("ada", "no password", "staff")
    assert user is not None
    return user


@pytest.fixture
async def conversation(desk: Desk, ada: User) -> Conversation:
    return await desk.store.conversations.create(ada.id, title="Hers")


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def page_of(user: User, desk: Desk) -> tuple[Client, ChatView]:
    with Client(page("/")) as client:
        view = ChatView(
            desk,
            Hub(desk),
            Visitor(user, "session"),
            SAY,
            sidebar=Sidebar(SAY, user.name, [], "token"),
            thread=Thread(SAY),
            composer=Composer(SAY, user.id, ""),
            preferences=Preferences(SAY),
        )
    client.on_delete(view.close)
    return client, view


async def test_a_page_that_goes_while_it_is_opened_follows_nothing(
    desk: Desk, ada: User, conversation: Conversation
) -> None:
    asked = ChatRequest(
        messages=(Message("user", "stuck"),), person=ada.id, source="page", conversation_id=conversation.id
    )
    job = await desk.service.submit(asked)
    client, view = page_of(ada, desk)
    opening = asyncio.create_task(view.open(conversation.id))
    await asyncio.sleep(0)  # the store is being asked
    client.delete()
    await opening
    await view.open(conversation.id)  # as a question asked elsewhere would have it
    await view.shown.show()
    assert view.shown.running == {}
    assert job.followers == 0
    desk.service.stop_job(job)
    await job.closed()


async def test_a_page_that_goes_no_longer_looks_for_a_rows_end(
    desk: Desk, ada: User, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    unfinished = exchange("1", person=ada.id, conversation_id=conversation.id, status=Status.RUNNING, finished_at=None)
    await desk.store.exchanges.record(unfinished)
    client, view = page_of(ada, desk)
    await view.open(conversation.id)
    (looking,) = [task for task in asyncio.all_tasks() if task.get_name() == "await a row's end"]
    assert not view.shown.answering  # one process: nobody answers it
    with monkeypatch.context() as several:
        several.setattr(desk.store, "cluster", True)
        assert view.shown.answering
        with pytest.raises(InvalidRequest):
            view.asking.check_free()
    client.delete()
    await asyncio.wait([looking])
    assert looking.cancelled()


async def test_a_page_that_went_is_freed_without_the_garbage_collector(
    desk: Desk, ada: User, conversation: Conversation, uncollected: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_ends, "STILL_RUNNING_S", 0.0)
    client, view = page_of(ada, desk)
    await view.open(conversation.id)
    left = [weakref.ref(one) for one in (view, view.shown, view.asking, view.turns)]
    page_ends._take_apart(client)
    client.delete()
    del client, view
    gone = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, gone.set)
    await gone.wait()
    assert [ref() for ref in left] == [None] * len(left)
