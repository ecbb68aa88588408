"""What the server asks the model on its own account: only while nobody asks, and it gives way at once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

import pytest

from engine.backends.scripted import ScriptedBackend
from engine.errors import BackendFailed
from engine.gate import Gate, Limits
from engine.spare import SpareTime
from engine.titles import WISH, clean_title, title_request
from engine.types import ChatRequest, Event, Message
from tests.storage.making import an_exchange


class Watched(ScriptedBackend):
    """Tells when a stream is opened and when it is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.opened, self.closed = asyncio.Event(), asyncio.Event()

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        self.opened.set()
        try:
            async with aclosing(super().stream(request)) as events:
                async for event in events:
                    yield event
        finally:
            self.closed.set()


def a_request(text: str = "Hello") -> ChatRequest:
    return ChatRequest(messages=(Message("user", text),), person=None, source="page")


def spare_time(backend: ScriptedBackend) -> tuple[SpareTime, Gate]:
    gate = Gate(Limits(1, 1, 1))
    return SpareTime(backend, gate), gate


async def test_the_answer_comes_while_nobody_asks() -> None:
    backend = ScriptedBackend(pause_s=0)
    spare, gate = spare_time(backend)
    assert await spare.answer(a_request()) == "You said: Hello"
    ticket = gate.enter("ada", 0)
    assert not spare.idle
    assert await spare.answer(a_request()) is None
    assert len(backend.history) == 1, "the model was not even asked"
    gate.leave(ticket, 0)
    assert spare.idle


async def test_it_gives_way_and_the_backend_is_free() -> None:
    backend = Watched()
    spare, _ = spare_time(backend)
    backend.hold()
    asking = asyncio.create_task(spare.answer(a_request("long")))
    await backend.opened.wait()
    assert not spare.idle
    assert await spare.answer(a_request()) is None, "one at a time"
    await spare.give_way()
    assert not backend.active
    assert await asking is None
    assert spare.idle


async def test_whoever_stops_waiting_stops_the_model() -> None:
    backend = Watched()
    spare, _ = spare_time(backend)
    backend.hold()
    asking = asyncio.create_task(spare.answer(a_request("long")))
    await backend.opened.wait()
    asking.cancel()
    await asyncio.wait([asking])
    await backend.closed.wait()
    assert spare.idle


async def test_a_failure_is_the_askers_to_hear() -> None:
    spare, _ = spare_time(ScriptedBackend(pause_s=0))
    with pytest.raises(BackendFailed):
        await spare.answer(a_request("fail before"))
    assert spare.idle


def test_a_title_is_asked_for_below_the_whole_first_turn() -> None:
    exchange = an_exchange("What?", "That.")
    messages = title_request(exchange).messages
    assert messages == (*exchange.messages, Message("assistant", "That."), Message("user", WISH))
    cut_off = replace(exchange, messages=(Message("user", "What?"), Message("assistant", "Th")), answer="at.")
    assert title_request(cut_off).messages[:-1] == (Message("user", "What?"), Message("assistant", "That."))


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ('"Zebras in the wild."\nMore words', "Zebras in the wild"),
        ("\n标题：《天气预报》", "天气预报"),
        ("**Title: A plan**", "A plan"),
        ("x" * 80, "x" * 59 + "…"),
        (' \n"" \n', ""),
    ],
)
def test_what_is_made_of_the_models_title(said: str, title: str) -> None:
    assert clean_title(said) == title
