"""The service on a scripted backend: every way out of a request, and what each leaves behind (nothing)."""

import asyncio

import pytest

from engine import recording
from engine.errors import BackendFailed, NotReady
from engine.service import ChatService
from engine.types import Status
from tests.engine.kit import (
    UnrulyBackend,
    assert_empty,
    ended,
    parts,
    question,
    running,
    service_on,
    speaking,
    until,
)


async def test_an_answer_is_followed_and_recorded_to_its_end(service: ChatService) -> None:
    backend, recorder = parts(service)
    backend.answers["hello"] = "Good day to you."
    job = await service.submit(question())
    text = "".join([update.text async for update in job.follow()])
    await job.closed()
    assert text == job.text == "Good day to you."
    assert recorder.statuses(job) == [Status.QUEUED, Status.RUNNING, Status.DONE]
    row = recorder.last(job)
    assert (row.answer, row.finish_reason, row.error) == ("Good day to you.", "stop", None)
    assert (row.prompt_tokens, row.completion_tokens) == (1, 4)
    assert row.started_at is not None
    assert row.first_token_at is not None
    assert row.finished_at is not None
    assert row.queued_at <= row.started_at <= row.first_token_at <= row.finished_at
    assert_empty(service)


async def test_stop_keeps_the_text_so_far(service: ChatService) -> None:
    backend, recorder = parts(service)
    job = await service.submit(question("long"))
    await until(job, speaking)
    backend.hold()
    service.stop_job(job)
    update = await ended(job)
    assert update.status is Status.STOPPED
    assert recorder.last(job).answer == job.text != ""
    assert recorder.last(job).completion_tokens == update.seq
    assert_empty(service)


async def test_leaving_the_line_never_reaches_the_backend(service: ChatService) -> None:
    backend, recorder = parts(service)
    backend.hold()
    first = await service.submit(question())
    second = await service.submit(question("second"))
    service.stop_job(second)
    assert (await ended(second)).status is Status.CANCELLED
    assert recorder.statuses(second) == [Status.QUEUED, Status.CANCELLED]
    assert recorder.last(second).started_at is None
    assert service.gate.depth == 1
    backend.go()
    assert (await ended(first)).status is Status.DONE
    assert [request.prompt for request in backend.history] == ["hello"]


async def test_a_request_cancelled_before_its_first_step_frees_its_place(service: ChatService) -> None:
    _, recorder = parts(service)
    job = await service.submit(question())
    service.end(job, Status.CANCELLED)
    assert (await ended(job)).status is Status.CANCELLED
    assert recorder.statuses(job) == [Status.QUEUED, Status.CANCELLED]


async def test_a_request_cancelled_before_the_backend_begins_closes_its_stream(service: ChatService) -> None:
    backend, _ = parts(service)
    backend.hold()
    job = await service.submit(question())
    await until(job, running)
    assert backend.active == {job.id: 1}
    service.end(job, Status.CANCELLED)
    assert (await ended(job)).status is Status.CANCELLED
    assert_empty(service)


async def test_the_first_ending_is_the_one_that_counts(service: ChatService) -> None:
    backend, recorder = parts(service)
    backend.hold()
    job = await service.submit(question())
    await until(job, running)
    service.stop_job(job)
    service.end(job, Status.CANCELLED)
    await job.closed()
    service.end(job, Status.FAILED)
    assert recorder.statuses(job) == [Status.QUEUED, Status.RUNNING, Status.STOPPED]


async def test_the_place_of_one_who_left_goes_to_the_next(service: ChatService) -> None:
    backend, _ = parts(service)
    backend.hold()
    first = await service.submit(question())
    second = await service.submit(question())
    assert (second.status, second.position) == (Status.QUEUED, 0)
    service.stop_job(first)
    update = await until(second, running)
    assert update.position is None
    backend.go()
    assert (await ended(second)).status is Status.DONE


@pytest.mark.parametrize("prompt", ["fail before", "crash", "time out inside", "no end"])
async def test_a_failure_before_the_first_token_is_told_and_the_next_request_works(
    service: ChatService, prompt: str
) -> None:
    _, recorder = parts(service)
    job = await service.submit(question(prompt))
    update = await ended(job)
    assert update.status is Status.FAILED
    assert isinstance(update.error, BackendFailed)
    assert recorder.last(job).error == str(update.error) != ""
    assert "bug" not in str(update.error)  # what goes wrong inside is for the log
    assert (await ended(await service.submit(question()))).status is Status.DONE


async def test_a_failure_midway_keeps_the_text_so_far(service: ChatService) -> None:
    _, recorder = parts(service)
    job = await service.submit(question("fail midway"))
    assert (await ended(job)).status is Status.FAILED
    assert recorder.last(job).answer == "This answer breaks off"


async def test_stop_is_stop_even_where_the_backend_fails_at_it(service: ChatService) -> None:
    job = await service.submit(question("sloppy"))
    await until(job, running)
    service.stop_job(job)
    assert (await ended(job)).status is Status.STOPPED


async def test_a_page_that_nobody_shows_any_more_is_ended_after_a_while() -> None:
    service = await service_on(UnrulyBackend(), abandon_after_s=0)
    unseen = await service.submit(question("stuck", source="page"))
    watched = await service.submit(question("stuck", source="page"))
    page, second_page = watched.follow(), watched.follow()
    await anext(page)  # before anything else may run: nobody watching is an end at once here
    await anext(second_page)
    program = await service.submit(question("stuck", source="api"))
    assert (await ended(unseen)).status is Status.DISCONNECTED
    await page.aclose()
    assert list(service.jobs) == [watched.id, program.id]
    await second_page.aclose()
    assert (await ended(watched)).status is Status.DISCONNECTED
    assert list(service.jobs) == [program.id]
    service.stop_job(program)
    await program.closed()
    assert_empty(service)


async def test_a_request_that_takes_too_long_ends_wherever_it_stands() -> None:
    service = await service_on(UnrulyBackend(), request_timeout_s=0.05, max_concurrent_requests=1)
    _, recorder = parts(service)
    stuck = await service.submit(question("stuck"))
    waiting = await service.submit(question("stuck"))
    for job in (stuck, waiting):
        update = await ended(job)
        assert update.status is Status.TIMED_OUT
        assert "0.05 seconds" in str(update.error)
        assert recorder.last(job).status is Status.TIMED_OUT
    assert_empty(service)


async def test_shutdown_lets_answers_finish_and_refuses_new_ones() -> None:
    service = await service_on(UnrulyBackend(), drain_s=60)
    backend, _ = parts(service)
    backend.hold()
    job = await service.submit(question())
    await until(job, running)
    stopping = asyncio.create_task(service.stop())
    await asyncio.sleep(0)
    with pytest.raises(NotReady) as refusal:
        await service.submit(question())
    assert refusal.value.code == service.state()[0] == "draining"
    backend.go()
    assert (await ended(job)).status is Status.DONE
    await stopping
    assert_empty(service)


async def test_shutdown_interrupts_what_does_not_finish(service: ChatService) -> None:
    _, recorder = parts(service)
    stuck, waiting = await service.submit(question("stuck")), await service.submit(question())
    await until(stuck, running)
    await service.stop()
    assert [recorder.last(job).status for job in (stuck, waiting)] == [Status.INTERRUPTED] * 2
    assert stuck.status is waiting.status is Status.INTERRUPTED


async def test_with_policy_refuse_nothing_is_answered_while_the_log_cannot_be_written(service: ChatService) -> None:
    _, recorder = parts(service)
    recorder.trouble = "disk full"
    with pytest.raises(NotReady, match="disk full") as refusal:
        await service.submit(question())
    assert refusal.value.code == "log_failed"
    assert service.state()[0] == "failed"
    recorder.trouble = None
    assert service.state() == ("ready", "")


async def test_with_policy_warn_answers_go_on_while_the_log_cannot_be_written() -> None:
    service = await service_on(UnrulyBackend(), on_log_failure="warn")
    _, recorder = parts(service)
    recorder.trouble, recorder.silent = "disk full", True  # the writer tries again and again, and says so
    async with asyncio.timeout(recording.WRITE_S - 1):  # nobody waits for what is known to be in trouble
        assert (await ended(await service.submit(question()))).status is Status.DONE


@pytest.mark.parametrize("way", ["refusing", "failing", "silent"])
async def test_a_recorder_that_fails_holds_nobody_up(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(recording, "WRITE_S", 0.01)
    service = await service_on(UnrulyBackend(), on_log_failure="warn")
    _, recorder = parts(service)
    setattr(recorder, way, True)
    job = await service.submit(question())
    assert (await ended(job)).status is Status.DONE
    assert_empty(service)


@pytest.mark.parametrize("way", ["refusing", "failing", "silent"])
async def test_with_policy_refuse_nobody_sees_a_token_that_is_not_in_the_log(
    service: ChatService, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(recording, "WRITE_S", 0.01)
    _, recorder = parts(service)
    setattr(recorder, way, True)
    last = await ended(await service.submit(question()))
    assert (last.status, last.text) == (Status.FAILED, "")
    assert isinstance(last.error, NotReady)
    assert last.error.code == "log_failed"
    assert_empty(service)


async def test_a_recorder_that_hangs_costs_an_answer_its_time_once_and_not_at_every_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recording, "WRITE_S", 0.1)
    service = await service_on(UnrulyBackend(), on_log_failure="warn")
    parts(service)[1].silent = True
    async with asyncio.timeout(60):  # 900 words, which would wait 90 s
        assert (await ended(await service.submit(question("word " * 900)))).status is Status.DONE


async def test_an_engine_that_does_not_stop_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stubborn(UnrulyBackend):
        async def stop(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr("engine.service.ENDING_S", 0.01)
    service = await service_on(Stubborn(), drain_s=0)
    job = await service.submit(question("stuck"))
    await until(job, running)
    async with asyncio.timeout(60):
        await service.stop()
    assert (await ended(job)).status is Status.INTERRUPTED


async def test_the_end_is_told_only_when_it_is_written(service: ChatService) -> None:
    backend, recorder = parts(service)
    backend.hold()
    job = await service.submit(question())
    await until(job, running)
    recorder.silent = True
    service.stop_job(job)
    while recorder.last(job).status is not Status.STOPPED:  # noqa: ASYNC110 - this moment has no event of its own
        await asyncio.sleep(0)
    assert service.gate.depth == 0  # the place is free at once
    assert job.status is Status.RUNNING
    recorder.unwritten[-1].set_result(None)
    assert (await ended(job)).status is Status.STOPPED
