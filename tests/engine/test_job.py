"""What followers of a job see: everything, in order, whenever they come and however slow they are."""

import asyncio
from contextlib import aclosing

import pytest

from engine.errors import BackendFailed
from engine.job import Job, Update
from engine.types import Delta, Done, Started, Status
from tests.engine.kit import question


def new_job() -> Job:
    return Job(question(), model="scripted", quantization="", queue_depth=0)


def say(job: Job, *words: str) -> None:
    for word in words:
        job.take(Delta(word))


def finish(job: Job, status: Status = Status.DONE) -> None:
    job.finish(status, None)
    job.close(status)


async def everything(job: Job, after: int = 0) -> list[Update]:
    async with aclosing(job.follow(after)) as updates:
        return [update async for update in updates]


async def test_a_follower_sees_each_step_of_the_way() -> None:
    job = new_job()
    updates = job.follow()
    assert (await anext(updates)).status is Status.QUEUED
    job.wait_at(2, 12.5)
    update = await anext(updates)
    assert (update.position, update.expected_wait_s) == (2, 12.5)
    job.run()
    update = await anext(updates)
    assert (update.status, update.position, update.expected_wait_s) == (Status.RUNNING, None, None)
    job.take(Started(prompt_tokens=9, cached_tokens=4))
    update = await anext(updates)
    assert (update.prompt_tokens, update.cached_tokens) == (9, 4)
    say(job, "Good")
    assert (await anext(updates)).text == "Good"
    job.take(Done("stop", prompt_tokens=9, completion_tokens=1, cached_tokens=4))
    finish(job)
    update = await anext(updates)
    assert (update.status, update.finish_reason, update.text) == (Status.DONE, "stop", "")
    with pytest.raises(StopAsyncIteration):
        await anext(updates)


async def test_who_comes_late_misses_nothing() -> None:
    job = new_job()
    job.run()
    say(job, "Good", " day")
    late = asyncio.create_task(everything(job))
    await asyncio.sleep(0)
    say(job, " to", " you")
    finish(job)
    assert "".join(update.text for update in await late) == "Good day to you"
    afterwards = await everything(job)
    assert [(update.text, update.status) for update in afterwards] == [("Good day to you", Status.DONE)]


async def test_who_is_slow_gets_several_deltas_at_once_and_holds_nobody_up() -> None:
    job = new_job()
    job.run()
    slow, quick = job.follow(), job.follow()
    await anext(slow)
    await anext(quick)
    seen = []
    for word in ("one", " two", " three"):
        say(job, word)
        seen.append((await anext(quick)).text)
    assert seen == ["one", " two", " three"]
    update = await anext(slow)
    assert (update.deltas, update.seq) == (("one", " two", " three"), 3)
    await slow.aclose()
    await quick.aclose()


async def test_who_lost_the_connection_goes_on_where_they_were() -> None:
    job = new_job()
    job.run()
    say(job, "one", " two")
    before = await anext(job.follow())
    say(job, " three")
    finish(job)
    assert [update.text for update in await everything(job, before.seq)] == [" three"]


async def test_what_comes_while_a_follower_is_busy_is_not_lost() -> None:
    """The wake-up between two looks is kept, also where several come at once."""
    job = new_job()
    job.run()
    text = ""
    async with aclosing(job.follow()) as updates:
        async for update in updates:
            text += update.text
            if len(job.deltas) < 50:
                say(job, "a", "b")
                await asyncio.sleep(0)
            elif not job.status.final:
                finish(job)
    assert text == "ab" * 25


async def test_the_first_follower_and_the_last_are_told_of() -> None:
    job = new_job()
    told: list[bool] = []
    job.on_watched = told.append
    first, second = job.follow(), job.follow()
    await anext(first)
    await anext(second)
    assert (told, job.followers) == ([True], 2)
    await first.aclose()
    assert told == [True]
    await second.aclose()
    assert (told, job.followers) == ([True, False], 0)


async def test_a_failure_is_told_with_its_sentence() -> None:
    job = new_job()
    job.run()
    row = job.finish(Status.FAILED, BackendFailed("The engine failed."))
    assert (row.status, row.error) == (Status.FAILED, "The engine failed.")
    assert not job.update().status.final  # not before it is written
    job.close(Status.FAILED)
    [update] = await everything(job)
    assert str(update.error) == "The engine failed."


async def test_tokens_are_counted_also_where_they_make_no_text_yet() -> None:
    job = new_job()
    job.run()
    job.take(Delta("", tokens=2))  # half of an emoji
    assert job.first_token_s is not None
    job.take(Delta("🙂", tokens=1))
    assert (job.completion_tokens, job.deltas) == (3, ["🙂"])


async def test_speed_needs_two_tokens() -> None:
    job = new_job()
    job.run()
    assert job.tokens_per_s == 0
    say(job, "one")
    assert job.tokens_per_s == 0
    say(job, " two", " three")
    job.finish(Status.DONE, None)
    assert job.first_token_s is not None
    assert job.finished_s is not None
    assert job.tokens_per_s == pytest.approx(2 / (job.finished_s - job.first_token_s))


async def test_followers_that_show_nothing_to_anybody_are_no_readers() -> None:
    job = new_job()
    async with aclosing(job.follow()) as shown, aclosing(job.follow(reading=False)) as minded:
        await anext(shown)
        await anext(minded)
        assert (job.followers, job.readers) == (2, 1)
    assert (job.followers, job.readers) == (0, 0)
