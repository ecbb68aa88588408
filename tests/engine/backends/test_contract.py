"""What every backend promises, whichever it is. A new one joins by a fixture that makes a Subject."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from torch import Tensor

from engine.backends import Backend
from engine.backends.remote import RemoteBackend
from engine.backends.scripted import ScriptedBackend
from engine.errors import EngineError, NotReady
from engine.settings import Settings
from engine.types import ChatRequest, Delta, Done, Event, Message, Progress, Sampling, Started
from tests.engine.backends.upstream import upstream


@dataclass
class Subject:
    """A started backend, and what a test needs to know of it."""

    backend: Backend
    freed: Callable[[], Awaitable[object]]  # returns once no stream holds anything
    doomed: str  # a prompt whose stream fails after some tokens, by itself or by `break_down`
    break_down: Callable[[], None]  # the worker fails, for every stream that is open


def silent(progress: Progress) -> None:
    """A Report that nobody reads."""


async def scripted() -> AsyncIterator[Subject]:
    backend = ScriptedBackend(pause_s=0.001)
    await backend.start(silent)

    async def freed() -> None:
        assert not backend.active

    yield Subject(backend, freed, doomed="fail midway", break_down=lambda: None)
    await backend.stop()


async def remote() -> AsyncIterator[Subject]:
    async with upstream() as server:
        backend = RemoteBackend(Settings(backend="remote", openai_base_url=server.url))
        await backend.start(silent)
        yield Subject(backend, server.idle.wait, doomed="fail midway", break_down=lambda: None)
        await backend.stop()


async def qwen2() -> AsyncIterator[Subject]:
    from engine.backends.qwen2 import Qwen2Backend
    from tests.engine.backends.qwen2.tiny import shared_tiny_settings

    backend = Qwen2Backend(shared_tiny_settings())
    await backend.start(silent)
    assert backend._engine
    engine = backend._engine

    async def freed() -> None:
        await collect(backend.stream(ask("Next", 1)))  # what was cancelled before is let go before this runs
        assert engine.cache.in_use == 0

    def fail_for_all() -> None:
        model = engine.worker._model
        step, left = model.step, 2 * engine.cache.in_use - 1  # together, in halves, and each alone

        def fail(*_: Any, **__: Any) -> Tensor:
            nonlocal left
            left -= 1
            if not left:
                model.step = step  # type: ignore[method-assign]  # the device's fault, for those that are open
            raise RuntimeError("injected")

        model.step = fail  # type: ignore[method-assign]  # the device's fault, for those that are open

    yield Subject(backend, freed, doomed="Go on for ever", break_down=fail_for_all)
    await backend.stop()


SUBJECTS = [scripted, remote, qwen2]


@pytest.fixture(params=SUBJECTS, ids=lambda make: make.__name__)
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[Subject]:
    async for subject in request.param():
        yield subject


def ask(prompt: str, max_tokens: int = 8) -> ChatRequest:
    return ChatRequest(
        messages=(Message("user", prompt),),
        sampling=Sampling(temperature=0, max_tokens=max_tokens),
        person="somebody",
        source="api",
    )


async def collect(stream: AsyncGenerator[Event, None]) -> list[Event]:
    async with aclosing(stream), asyncio.timeout(60):
        return [event async for event in stream]


async def first_delta(stream: AsyncGenerator[Event, None]) -> Delta:
    async with asyncio.timeout(60):
        while not isinstance(event := await anext(stream), Delta):
            pass
        return event


def text_of(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


async def test_it_says_what_it_is_and_is_ready(subject: Subject) -> None:
    backend = subject.backend
    assert backend.health() is None
    assert backend.model
    assert backend.reason.endswith(".")
    assert backend.context_tokens >= 64
    assert backend.capacity >= 2
    assert backend.count_tokens([Message("user", "Hello 你好 🙂")]) >= 3


async def test_a_stream_is_started_then_deltas_then_exactly_one_done(subject: Subject) -> None:
    started, *deltas, done = await collect(subject.backend.stream(ask("Say hello to everybody", 64)))
    assert isinstance(started, Started)
    assert {type(event) for event in deltas} == {Delta}
    assert isinstance(done, Done)
    assert done.prompt_tokens > 0
    assert done.completion_tokens == sum(event.tokens for event in deltas if isinstance(event, Delta))


async def test_max_tokens_is_kept(subject: Subject) -> None:
    done = (await collect(subject.backend.stream(ask("Count from one to one hundred, please", 3))))[-1]
    assert isinstance(done, Done)
    assert (done.finish_reason, done.completion_tokens) == ("length", 3)


async def test_closing_early_frees_the_place_within_a_second(subject: Subject) -> None:
    stream = subject.backend.stream(ask("long", 1000))
    await first_delta(stream)
    async with asyncio.timeout(1):
        await stream.aclose()
        await subject.freed()
    assert isinstance((await collect(subject.backend.stream(ask("Next"))))[-1], Done)


async def test_closing_before_the_first_token_frees_the_place(subject: Subject) -> None:
    stream = subject.backend.stream(ask("long", 1000))
    asking = asyncio.create_task(anext(stream))
    await asyncio.sleep(0)  # it has begun
    asking.cancel()
    async with asyncio.timeout(1):
        await asyncio.wait([asking])
        await stream.aclose()
        await subject.freed()


async def test_two_streams_interleave(subject: Subject) -> None:
    order = ""

    async def follow(name: str) -> None:
        nonlocal order
        async with aclosing(subject.backend.stream(ask("long", 20))) as stream:
            async for _ in stream:
                order += name

    async with asyncio.timeout(60), asyncio.TaskGroup() as both:
        both.create_task(follow("a"))
        both.create_task(follow("b"))
    switches = sum(one != other for one, other in pairwise(order))
    assert switches > 1, order  # not one after the other


async def test_streams_do_not_mix_their_answers(subject: Subject) -> None:
    prompts = ["Name a fruit", "Name a colour", "Name a city", "说一个数字"]
    alone = [text_of(await collect(subject.backend.stream(ask(prompt)))) for prompt in prompts]
    together = await asyncio.gather(*(collect(subject.backend.stream(ask(prompt))) for prompt in prompts))
    assert [text_of(events) for events in together] == alone


async def test_a_failure_reaches_every_open_stream_and_the_next_request_is_answered_or_refused(
    subject: Subject,
) -> None:
    streams = [subject.backend.stream(ask(subject.doomed, 1000)) for _ in range(3)]
    for stream in streams:
        await first_delta(stream)
    subject.break_down()
    failures = await asyncio.gather(*map(collect, streams), return_exceptions=True)
    assert all(isinstance(failure, EngineError) and str(failure) for failure in failures), failures
    with suppress(NotReady):
        assert isinstance((await collect(subject.backend.stream(ask("Next"))))[-1], Done)


async def test_stopping_twice_is_safe(subject: Subject) -> None:
    async with asyncio.timeout(10):
        await subject.backend.stop()
        await subject.backend.stop()
