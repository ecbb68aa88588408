"""What fails, fails alone: memory that does not suffice, numbers that are none, a device that is broken for good."""

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.stream import Stream
from engine.backends.qwen2.tokens import Tokens
from engine.backends.qwen2.worker import Worker
from engine.errors import BackendFailed
from tests.engine.backends.qwen2.conftest import CPU, ScriptedModel, StartWorker, small_cache
from tests.engine.backends.qwen2.test_qwen2_worker import GREEDY, events_of, text_of

PROMPTS = [[(i * k) % 90 for i in range(10 + 3 * k)] for k in range(1, 7)]
BAD = 200  # a token that stands in no good prompt, and that no answer here says
POISONED = [1, 2, BAD, 3, 4]


class Hungry(Qwen2):
    """The memory suffices for `rows` tokens a step. A sequence in which BAD stands fails every step that it is in."""

    rows = 64
    error: Exception = torch.OutOfMemoryError("CUDA out of memory.")

    def step(self, pieces: Sequence[Piece], cache: KVCache) -> Tensor:
        if any(BAD in piece.tokens for piece in pieces):
            raise self.error
        if sum(len(piece.tokens) for piece in pieces) > self.rows:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super().step(pieces, cache)


def cache_for(model: Qwen2) -> KVCache:
    return KVCache(model.shape, 8, 128, CPU, model.dtype)


def open_all(worker: Worker) -> list[Stream]:
    return [worker.open(list(prompt), GREEDY, 20) for prompt in PROMPTS]


async def answers(streams: Sequence[Stream]) -> list[str]:
    return [text_of(await events_of(stream)) for stream in streams]


@pytest.fixture
async def expected(start_worker: StartWorker, tiny_model: Qwen2) -> list[str]:
    found = await answers(open_all(start_worker(tiny_model, cache_for(tiny_model))))
    assert all(found)
    return found


async def test_where_memory_suffices_for_few_at_once_all_are_answered(
    start_worker: StartWorker, ready: Path, expected: list[str]
) -> None:
    model = Hungry.read(ready, CPU, unpack=True)
    cache = cache_for(model)
    worker = start_worker(model, cache)
    model.rows = 30  # the longest prompt alone
    assert await answers(open_all(worker)) == expected
    assert cache.in_use == 0


@pytest.mark.parametrize("error", [Hungry.error, RuntimeError("a bug in a kernel")], ids=lambda e: type(e).__name__)
async def test_what_a_step_fails_at_fails_the_request_that_it_is_for_and_no_other(
    start_worker: StartWorker, ready: Path, expected: list[str], error: Exception
) -> None:
    model = Hungry.read(ready, CPU, unpack=True)
    model.error = error
    cache = cache_for(model)
    worker = start_worker(model, cache)
    streams = open_all(worker)
    bad = worker.open(list(POISONED), GREEDY, 20)
    [failure] = await events_of(bad)
    assert isinstance(failure, BackendFailed)
    assert ("memory" in str(failure)) == (error is Hungry.error)
    assert await answers(streams) == expected
    assert (cache.in_use, worker.health()) == (0, None)


async def test_numbers_that_are_none_fail_their_request_and_leave_nothing_behind(
    start_worker: StartWorker, ready: Path, expected: list[str]
) -> None:
    """The others answer as ever, those beside it, and those that get its slot afterwards."""
    model = Qwen2.read(ready, CPU, unpack=True)
    model.embedding[BAD] = torch.nan
    cache = cache_for(model)
    worker = start_worker(model, cache)
    poisoned = worker.open([*range(40), BAD, *range(40)], GREEDY, 20)
    streams = open_all(worker)
    [failure] = await events_of(poisoned)
    assert isinstance(failure, BackendFailed)
    assert await answers(streams) == expected
    assert all(tensor.isfinite().all() for tensor in (*cache.keys, *cache.values))
    for slot in cache.slots:
        slot.tokens = []  # so that all are read anew, in whatever slot
    assert await answers(open_all(worker)) == expected
    assert (cache.in_use, worker.health()) == (0, None)


async def test_no_memory_to_choose_a_token_fails_that_request_alone(start_worker: StartWorker) -> None:
    class Greedy:
        """A constraint that takes all memory."""

        def allowed(self, count: int) -> Tensor | None:
            raise MemoryError

        def take(self, token: int) -> None: ...

    worker = start_worker(ScriptedModel(lambda seen: 97))
    good, bad = worker.open([1, 2], GREEDY, 5), worker.open([3, 4], GREEDY, 5, Greedy())
    [failure] = await events_of(bad)
    assert "memory" in str(failure)
    assert text_of(await events_of(good)) == "aaaaa"


async def test_the_end_of_the_thread_is_told_unless_it_was_asked_for(start_worker: StartWorker) -> None:
    asked, broken = start_worker(ScriptedModel(lambda seen: 97)), start_worker(model := ScriptedModel(lambda seen: 97))

    def assertion() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    model.before_step = assertion
    assert isinstance((await events_of(broken.open([1], GREEDY, 5)))[-1], BackendFailed)
    assert "RuntimeError" in await asyncio.wait_for(asyncio.wrap_future(broken.broken), 30)
    await asyncio.to_thread(asked.stop)
    assert not asked.broken.done()


class WithoutSpare(ScriptedModel):
    """The memory suffices for what is asked, and for nothing beside."""

    def __init__(self, answer: int) -> None:
        super().__init__(lambda seen: answer)
        self.went_without = threading.Event()

    def step(self, pieces: Sequence[Piece], cache: KVCache) -> Tensor:
        if not any(piece.logits for piece in pieces):
            self.went_without.set()
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return super().step(pieces, cache)


async def test_what_cannot_be_read_ahead_fails_nobody(start_worker: StartWorker, tokens: Tokens) -> None:
    model, cache = WithoutSpare(answer=97), small_cache()
    worker = start_worker(model, cache)
    await events_of(worker.open([1, 2, 3], GREEDY, 2))
    await events_of(worker.open([tokens.start, 4, 5], GREEDY, 2))
    assert await asyncio.to_thread(model.went_without.wait, 60)
    assert text_of(await events_of(worker.open([6, 7], GREEDY, 2))) == "aa"
    assert cache.cached([1, 2, 3, 4]) == 3  # what others have left is there; a failure would have cleared it
    assert worker.health() is None
