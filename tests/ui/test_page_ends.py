"""A page that is gone is freed without the garbage collector."""

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest
from nicegui import Client, core, ui
from nicegui.page import page

from ui.page_ends import _take_apart


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


class Part:
    """As pages are made: it holds its elements, and they call it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.button = ui.button(on_click=self.close)
        client.on_delete(self.close)

    def close(self) -> None:
        pass


async def test_nothing_is_left_for_the_garbage_collector(uncollected: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
    client = Client(page("/"))
    with client:
        part = Part(client)
    left = [weakref.ref(one) for one in (client, part, part.button, part.button.classes, part.button.props)]
    _take_apart(client)
    client.delete()
    await asyncio.sleep(0)  # the handlers are forgotten
    await asyncio.sleep(0)
    del client, part
    assert [ref() for ref in left] == [None] * len(left)
