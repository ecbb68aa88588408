"""The way into the service: what it takes in, what it refuses, and that a refusal leaves nothing behind."""

import asyncio
from dataclasses import replace

import pytest

from engine.backends.scripted import ScriptedBackend
from engine.errors import BackendFailed, ContextOverflow, EngineError, InvalidRequest, NotReady, QueueFull, UserLimit
from engine.gate import Limits
from engine.service import ChatService
from engine.types import ChatRequest, Message, Report, Sampling, Status, new_id
from tests.engine.kit import (
    MemoryRecorder,
    UnrulyBackend,
    ended,
    parts,
    question,
    running,
    service_on,
    until,
)


async def counting(backend: UnrulyBackend) -> None:
    assert await asyncio.to_thread(backend.counting.wait, 60)


async def test_cancelling_submit_while_tokens_are_counted_gives_the_place_back(service: ChatService) -> None:
    backend, recorder = parts(service)
    entering = asyncio.create_task(service.submit(question("slow to read")))
    await counting(backend)
    assert service.gate.depth == 1
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    assert service.gate.depth == 0
    assert not recorder.rows
    backend.counted.set()


async def test_a_place_that_becomes_free_while_tokens_are_counted_is_used(service: ChatService) -> None:
    backend, _ = parts(service)
    first = await service.submit(question("stuck"))
    entering = asyncio.create_task(service.submit(question("slow to read")))
    await counting(backend)
    service.stop_job(first)
    await first.closed()
    backend.counted.set()
    assert (await ended(await entering)).status is Status.DONE


async def test_a_server_that_stops_while_tokens_are_counted_takes_nothing_in(service: ChatService) -> None:
    backend, recorder = parts(service)
    entering = asyncio.create_task(service.submit(question("slow to read")))
    await counting(backend)
    await service.stop()
    backend.counted.set()
    with pytest.raises(NotReady, match="going down"):
        await entering
    assert not recorder.rows


async def test_a_prompt_that_breaks_the_tokenizer_is_an_error_with_a_sentence(service: ChatService) -> None:
    with pytest.raises(BackendFailed, match="could not read this prompt"):
        await service.submit(question("unreadable"))
    assert service.refused == {"engine_error": 1}


async def test_a_prompt_without_room_for_an_answer_is_refused(service: ChatService) -> None:
    with pytest.raises(ContextOverflow) as refusal:
        await service.submit(question("word " * 4096))
    assert (refusal.value.prompt_tokens, refusal.value.limit) == (4097, 4096)


@pytest.mark.parametrize(
    ("wanted", "prompt", "given"),
    [(None, "hello", 1024), (7, "hello", 7), (100_000, "hello", 1024), (None, "word " * 4000, 95)],
)
async def test_max_tokens_is_what_the_server_and_the_context_allow(
    service: ChatService, wanted: int | None, prompt: str, given: int
) -> None:
    request = ChatRequest(
        messages=(Message("user", prompt),), sampling=Sampling(max_tokens=wanted), person="ada", source="api"
    )
    job = await service.submit(request)
    assert job.request.sampling.max_tokens == given


@pytest.mark.parametrize(
    ("sampling", "drawn"), [(Sampling(), True), (Sampling(seed=7), False), (Sampling(temperature=0), False)]
)
async def test_chance_gets_a_seed_that_is_logged(service: ChatService, sampling: Sampling, drawn: bool) -> None:
    """Else nobody could ever draw the same answer again."""
    request = ChatRequest(messages=(Message("user", "hello"),), sampling=sampling, person="ada", source="page")
    seeds = [(await service.submit(replace(request, id=new_id()))).exchange().sampling.seed for _ in range(2)]
    assert (None not in seeds and len(set(seeds)) == 2) if drawn else seeds == [sampling.seed] * 2


async def test_what_is_refused_is_counted_by_its_kind(service: ChatService) -> None:
    backend, _ = parts(service)
    backend.hold()
    jobs = [await service.submit(question()) for _ in range(2)]
    with pytest.raises(QueueFull):
        await service.submit(question())
    service.change_limits(Limits(1, 5, 2))
    with pytest.raises(UserLimit):
        await service.submit(question())
    backend.go()
    for job in jobs:
        await job.closed()
    assert service.refused == {"queue_full": 1, "user_limit": 1}


async def test_who_has_something_to_make_ready_can_ask_first_whether_it_would_be_taken(service: ChatService) -> None:
    backend, recorder = parts(service)
    backend.hold()
    service.check_open("ann")
    jobs = [await service.submit(question()) for _ in range(2)]
    rows = len(recorder.rows)
    with pytest.raises(QueueFull):
        service.check_open("ann")
    assert (service.refused, service.gate.depth, len(recorder.rows)) == ({"queue_full": 1}, 2, rows)
    backend.go()
    for job in jobs:
        await job.closed()
    service.check_open("ann")


async def test_one_id_is_not_answered_twice_at_once(service: ChatService) -> None:
    request = question("stuck")
    job = await service.submit(request)
    with pytest.raises(InvalidRequest, match=request.id):
        await service.submit(request)
    assert list(service.jobs.values()) == [job]
    assert service.gate.depth == 1


async def test_higher_limits_let_those_who_wait_run(service: ChatService) -> None:
    backend, _ = parts(service)
    backend.hold()
    await service.submit(question())
    waiting = await service.submit(question())
    service.change_limits(Limits(2, 1, 3))
    await until(waiting, running)


async def test_no_more_run_than_the_backend_can_carry() -> None:
    backend = UnrulyBackend()
    backend.capacity = 2
    service = await service_on(backend, max_concurrent_requests=10)
    assert service.gate.limits.concurrent == 2
    service.change_limits(Limits(500, 1, 1))
    assert service.gate.limits == Limits(2, 1, 1)


async def test_those_who_wait_are_told_where_they_stand() -> None:
    service = await service_on(max_concurrent_requests=1, drain_s=0)
    assert (await ended(await service.submit(question()))).status is Status.DONE
    assert isinstance(service.backend, ScriptedBackend)
    service.backend.hold()
    jobs = [await service.submit(question()) for _ in range(3)]
    service.gate.duration_s = 1000
    assert [job.position for job in jobs] == [None, 0, 1]
    service.stop_job(jobs[1])
    update = await until(jobs[2], lambda update: update.position == 0)
    assert update.expected_wait_s == pytest.approx(1000, abs=10)
    await service.stop()


async def test_nothing_is_taken_before_the_model_is_there(service: ChatService) -> None:
    unloaded = ChatService(service.settings, UnrulyBackend(), MemoryRecorder())
    with pytest.raises(NotReady) as refusal:
        await unloaded.submit(question())
    assert (refusal.value.code, refusal.value.retry_after_s) == ("model_loading", 5)


@pytest.mark.parametrize("error", [EngineError("No such model."), MemoryError("No such model.")])
async def test_a_model_that_cannot_be_loaded_is_told_to_everybody_who_asks(error: Exception) -> None:
    class Absent(ScriptedBackend):
        async def start(self, report: Report) -> None:
            raise error

    service = await service_on(Absent())
    with pytest.raises(NotReady, match=r"No such model\.") as refusal:
        await service.submit(question())
    assert refusal.value.code == "engine_failed"


async def test_a_backend_in_trouble_takes_nothing_until_it_is_well_again(service: ChatService) -> None:
    backend, _ = parts(service)
    backend.trouble = "The worker died."
    with pytest.raises(NotReady, match="worker died"):
        await service.submit(question())
    backend.trouble = None
    assert (await ended(await service.submit(question()))).status is Status.DONE


async def test_several_are_taken_in_together_or_not_at_all(service: ChatService) -> None:
    backend, recorder = parts(service)
    with pytest.raises(QueueFull):
        await service.submit_all([question(f"{n}") for n in range(3)])  # one place to run, one to wait
    assert service.gate.depth == 0
    assert not recorder.rows
    assert not backend.history
    first, second = await service.submit_all([question("one"), question("two")])
    await first.closed()
    await second.closed()
    assert (first.text, second.text) == ("You said: one", "You said: two")
