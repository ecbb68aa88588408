"""Pausing, draining and resuming: what is new is told why, and nobody who is inside is put out."""

import asyncio

import pytest

from engine.errors import NotReady
from engine.gate import Limits
from engine.monitor import Monitor
from engine.service import ChatService
from engine.types import Status
from tests.engine.kit import ended, parts, question, running, until


async def test_a_paused_server_refuses_with_the_administrators_words_and_finishes_what_it_has(
    service: ChatService,
) -> None:
    backend, _ = parts(service)
    backend.hold()
    inside = await service.submit(question())
    waiting = await service.submit(question(person="bob"))
    service.intake.steer("paused", "午饭时间，十三点再来。")
    with pytest.raises(NotReady) as refusal:
        await service.submit(question())
    assert (refusal.value.code, refusal.value.note) == ("paused", "午饭时间，十三点再来。")
    assert service.refused == {"paused": 1}
    assert service.state() == ("paused", "午饭时间，十三点再来。")
    backend.go()
    assert [(await ended(job)).status for job in (inside, waiting)] == [Status.DONE, Status.DONE]

    service.intake.steer("open")
    assert (await ended(await service.submit(question()))).status is Status.DONE


async def test_a_draining_server_says_so_once_nothing_is_left(service: ChatService) -> None:
    backend, _ = parts(service)
    backend.hold()
    inside = await service.submit(question())
    service.intake.steer("draining")
    assert service.state() == ("draining", "The server finishes what it has and takes no new requests.")
    with pytest.raises(NotReady) as refusal:
        service.check_open(None)
    assert refusal.value.code == "draining"
    backend.go()
    await ended(inside)
    assert service.state() == ("draining", "The server is drained: nothing runs or waits.")
    service.intake.steer("open")
    assert service.state() == ("ready", "")


async def test_a_request_whose_tokens_are_being_counted_when_the_pause_comes_is_not_taken(service: ChatService) -> None:
    backend, _ = parts(service)
    asking = asyncio.create_task(service.submit(question("slow to read")))
    assert await asyncio.to_thread(backend.counting.wait, 60)
    service.intake.steer("paused")
    backend.counted.set()
    with pytest.raises(NotReady):
        await asking
    assert service.gate.depth == 0


async def test_going_down_outweighs_a_pause(service: ChatService) -> None:
    service.intake.steer("paused", "back soon")
    await service.stop()
    assert service.state() == ("draining", "The server is going down; it takes no new requests.")


async def test_a_stall_is_told_and_refuses_nobody(service: ChatService) -> None:
    service.intake.stall = "Nothing moves."
    assert service.state() == ("stalled", "Nothing moves.")
    assert (await ended(await service.submit(question()))).status is Status.DONE
    Monitor(service)  # the next sample sees that nothing runs
    assert service.state() == ("ready", "")


async def test_moving_to_the_front_changes_the_order_and_tells_the_positions(service: ChatService) -> None:
    backend, _ = parts(service)
    service.change_limits(Limits(concurrent=1, waiting=3, per_person=3))
    backend.hold()
    first = await service.submit(question(person="ada"))
    await until(first, running)
    second, third = [await service.submit(question(person=name)) for name in ("bob", "carol")]
    assert (second.position, third.position) == (0, 1)
    assert service.move_to_front(third)
    assert (second.position, third.position) == (1, 0)
    assert not service.move_to_front(first)
    backend.go()
    for job in (first, second, third):
        await ended(job)
    assert not service.move_to_front(third)
    assert [request.person for request in backend.history] == ["ada", "carol", "bob"]
