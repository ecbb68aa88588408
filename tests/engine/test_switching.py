"""Another model without a restart: who waits goes on waiting, and nobody is lost where it cannot be loaded."""

import asyncio
from collections.abc import Sequence

import pytest

from engine.backends.scripted import ScriptedBackend
from engine.errors import BackendFailed, ContextOverflow, InvalidRequest, NotReady
from engine.job import Job
from engine.service import ChatService
from engine.settings import Settings
from engine.types import Message, Progress, Report, Status
from tests.engine.kit import MemoryRecorder, assert_empty, ended, question, running, speaking, until


class Model(ScriptedBackend):
    """Says which model it is; `small` has little room, `broken` cannot be loaded, and none loads before it may."""

    def __init__(self, shelf: "Shelf", name: str) -> None:
        super().__init__(pause_s=0, model=name, context_tokens=8 if name == "small" else 4096)
        self.capacity = {"small": 1}.get(name, 4)
        self.shelf, self.closed = shelf, False

    async def start(self, report: Report) -> None:
        self.shelf.loading.set()
        report(Progress("reading the script"))
        await self.shelf.may_load.wait()
        if self.model in self.shelf.broken:
            raise BackendFailed(f"{self.model} is broken.")

    def count_tokens(self, messages: Sequence[Message]) -> int:
        assert not self.closed, "a closed backend is asked"
        return super().count_tokens(messages)

    async def stop(self) -> None:
        self.closed = True
        await super().stop()


class Shelf:
    """Makes the models that the settings name, and knows what it made."""

    def __init__(self) -> None:
        self.made: list[Model] = []
        self.broken = {"broken"}
        self.loading, self.may_load = asyncio.Event(), asyncio.Event()
        self.may_load.set()

    def make(self, settings: Settings) -> Model:
        self.made.append(Model(self, settings.model))
        return self.made[-1]

    async def service(self, **settings: object) -> ChatService:
        given = {"backend": "scripted", "model": "first", "models": "second, small, broken", "drain_s": 0, **settings}
        chosen = Settings.model_validate(given)
        service = ChatService(chosen, self.make(chosen), MemoryRecorder(), self.make)
        await service.start()
        self.loading.clear()
        return service


async def test_who_waits_runs_on_the_other_model_and_who_runs_comes_to_an_end() -> None:
    shelf = Shelf()
    service = await shelf.service(max_concurrent_requests=1, drain_s=60)
    (first,) = shelf.made
    first.hold()
    runs, waits = await service.submit(question("one")), await service.submit(question("two"))
    await until(runs, running)
    shelf.may_load.clear()
    switched = service.switching.begin("second")
    late = await service.submit(question("three"))  # while an answer finishes, one more may wait
    assert (service.switching.step, service.state()[0], late.status) == ("finishing", "ready", Status.QUEUED)
    first.go()
    assert (await ended(runs)).status is Status.DONE
    await shelf.loading.wait()
    assert first.closed
    assert service.switching.wanted == "second"
    assert service.state() == ("loading", "The model is loading (reading the script).")
    with pytest.raises(NotReady, match="The model is loading"):
        await service.submit(question("four"))
    assert waits.status is Status.QUEUED
    shelf.may_load.set()
    await switched
    for job in (waits, late):
        assert (await ended(job)).status is Status.DONE
    recorder = service.recorder
    assert isinstance(recorder, MemoryRecorder)
    assert [recorder.last(job).model for job in (runs, waits, late)] == ["first", "second", "second"]
    assert (service.switching.name, service.switching.step, service.state()) == ("second", "", ("ready", ""))
    await service.stop()
    assert_empty(service)


async def test_an_answer_that_does_not_finish_in_time_is_stopped_with_its_text() -> None:
    shelf = Shelf()
    service = await shelf.service(drain_s=0.05)
    shelf.made[0].pause_s = 0.001
    job = await service.submit(question("long"))
    await until(job, speaking)
    await service.switching.begin("second")
    end = await ended(job)
    assert (end.status, str(end.error)) == (
        Status.INTERRUPTED,
        "Another model was loaded before this answer was finished.",
    )
    assert job.text.startswith("word0")
    await service.stop()
    assert_empty(service)


async def test_a_prompt_that_does_not_fit_the_other_model_fails_with_its_sentence_and_a_shorter_one_runs() -> None:
    shelf = Shelf()
    service = await shelf.service(max_concurrent_requests=1)
    shelf.made[0].hold()
    runs = await service.submit(question("one"))
    await until(runs, running)
    too_long = await service.submit(question("one two three four five six seven eight nine"))
    short = await service.submit(question("one two"))
    await service.switching.begin("small")
    failed = await ended(too_long)
    assert failed.status is Status.FAILED
    assert isinstance(failed.error, ContextOverflow)
    assert str(failed.error) == "The prompt has 9 tokens, and this model's context holds 8; shorten it."
    assert (await ended(short)).status is Status.DONE
    assert short.request.sampling.max_tokens == 6  # what room there is now
    await service.stop()
    assert_empty(service)


async def one_runs_and_one_waits(shelf: Shelf, service: ChatService) -> Job:
    """Of two questions; returns the one that waits."""
    shelf.made[0].hold()
    await until(await service.submit(question("one")), running)
    return await service.submit(question("two"))


async def test_a_model_that_cannot_be_loaded_leaves_the_reason_and_the_earlier_one_answers() -> None:
    shelf = Shelf()
    service = await shelf.service(max_concurrent_requests=1)
    waits = await one_runs_and_one_waits(shelf, service)
    await service.switching.begin("broken")
    assert service.switching.failure == ("broken", "broken is broken.")
    assert [model.model for model in shelf.made] == ["first", "broken", "first"]
    assert (await ended(waits)).status is Status.DONE
    assert (service.switching.name, service.state()) == ("first", ("ready", ""))
    await service.stop()
    assert_empty(service)


async def test_where_no_model_is_left_everybody_is_told_and_a_listed_one_can_still_be_loaded() -> None:
    shelf = Shelf()
    service = await shelf.service(max_concurrent_requests=1)
    waits = await one_runs_and_one_waits(shelf, service)
    shelf.broken.add("first")
    await service.switching.begin("broken")
    assert service.state() == ("failed", "first is broken.")
    assert str((await ended(waits)).error) == "first is broken."
    with pytest.raises(NotReady, match="first is broken"):
        await service.submit(question("three"))
    await service.switching.begin("second")
    assert (await ended(await service.submit(question("four")))).status is Status.DONE
    assert service.switching.failure is None
    await service.stop()
    assert_empty(service)


async def test_the_limits_of_a_small_model_are_not_kept_for_a_large_one() -> None:
    service = await Shelf().service(max_concurrent_requests=3)
    await service.switching.begin("small")
    assert service.gate.limits.concurrent == 1
    await service.switching.begin("first")
    assert service.gate.limits.concurrent == 3
    await service.stop()


async def test_only_a_listed_model_is_loaded_and_one_at_a_time() -> None:
    shelf = Shelf()
    service = await shelf.service()
    with pytest.raises(InvalidRequest, match="other is not one of the listed models"):
        service.switching.begin("other")
    shelf.may_load.clear()
    switched = service.switching.begin("second")
    with pytest.raises(NotReady, match="being loaded already"):
        service.switching.begin("first")
    shelf.may_load.set()
    await switched
    await service.switching.begin("second")  # the same again, which may mend what has gone wrong in it
    assert [model.model for model in shelf.made] == ["first", "second", "second"]
    await service.stop()


@pytest.mark.parametrize("step", ["finishing", "loading"])
async def test_a_server_that_goes_down_meanwhile_ends_everybody(step: str) -> None:
    shelf = Shelf()
    service = await shelf.service(max_concurrent_requests=1, drain_s=0.2)
    shelf.may_load.clear()
    job = waits = await service.submit(question("long"))
    if step == "finishing":
        shelf.made[0].hold()
        waits = await service.submit(question("two"))
        await until(job, running)
    switched = service.switching.begin("second")
    if step == "loading":
        await ended(job)
        await shelf.loading.wait()
    stopped = asyncio.create_task(service.stop())
    await stopped
    assert waits.status.final
    shelf.may_load.set()
    await switched
    assert service.state()[0] == "draining"
    assert shelf.made[-1].closed
    assert_empty(service)
