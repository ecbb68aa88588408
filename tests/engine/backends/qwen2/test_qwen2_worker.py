"""The generation thread: streams that end well, are cancelled, or fail, and a thread that goes on after each."""

import asyncio
import random
from pathlib import Path

import pytest
import torch

from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.stream import Stream
from engine.backends.qwen2.tokens import Tokens
from engine.backends.qwen2.worker import Worker
from engine.errors import BackendFailed, EngineError, NotReady
from engine.types import Delta, Done, Event, Sampling, Started
from tests.engine.backends.qwen2.conftest import CPU, ScriptedModel, StartWorker, small_cache

GREEDY = Sampling(temperature=0, repetition_penalty=1)
PROMPT = [1, 2, 3]


def says(tokens: Tokens, text: str, prompt: int = len(PROMPT)) -> ScriptedModel:
    """A model that says the text after a prompt of that many tokens, and then ends its turn."""
    script = [*tokens.encode(text), tokens.end]
    return ScriptedModel(lambda seen: script[min(len(seen) - prompt, len(script) - 1)])


async def events_of(stream: Stream) -> list[Event | EngineError | None]:
    """All events up to the last."""
    events: list[Event | EngineError | None] = []
    while not events or isinstance(events[-1], Started | Delta):
        events.append(await asyncio.wait_for(stream.events.get(), 60))
    return events


def text_of(events: list[Event | EngineError | None]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


async def settled(worker: Worker) -> None:
    """Return when the thread has let go of everything that was asked of it before."""
    probe = worker.open([9], GREEDY, 1)
    await events_of(probe)


async def test_an_answer_is_started_said_and_done(start_worker: StartWorker, tokens: Tokens) -> None:
    events = await events_of(start_worker(says(tokens, "hello world")).open(PROMPT, GREEDY, 50))
    assert events == [Started(3), Delta("hello"), Delta(" world"), Done("stop", 3, 2)]


async def test_a_prompts_last_token_is_read_as_the_others_were_where_they_are_cached(
    start_worker: StartWorker, tokens: Tokens
) -> None:
    """Prompts may be read with other linears than answers, and the same question has to get the same answer again."""
    model = says(tokens, "hello")
    worker = start_worker(model)
    first = []
    for _ in range(2):
        before = len(model.steps)
        await events_of(worker.open(PROMPT, GREEDY, 50))
        pieces = [piece for step in model.steps[before:] for piece in step]
        first.append(pieces[0])
        assert [piece.is_prompt for piece in pieces] == [True] + [False] * (len(pieces) - 1)
    assert [len(piece.tokens) for piece in first] == [len(PROMPT), 1]


async def test_max_tokens_cuts_between_characters(start_worker: StartWorker, tokens: Tokens) -> None:
    worker = start_worker(says(tokens, "ab😀"))
    events = await events_of(worker.open(PROMPT, GREEDY, 4))
    assert text_of(events) == "ab"
    assert events[-1] == Done("length", 3, 4)


async def test_a_stop_string_ends_the_answer(start_worker: StartWorker, tokens: Tokens) -> None:
    worker = start_worker(says(tokens, "one two three"))
    events = await events_of(worker.open(PROMPT, Sampling(temperature=0, repetition_penalty=1, stop=("o t",)), 50))
    assert text_of(events) == "one tw"
    assert isinstance(events[-1], Done)
    assert events[-1].finish_reason == "stop"


async def test_ignore_eos_goes_on_to_max_tokens(start_worker: StartWorker, tokens: Tokens) -> None:
    worker = start_worker(says(tokens, "ab"))
    events = await events_of(worker.open(PROMPT, Sampling(temperature=0, ignore_eos=True), 9))
    assert text_of(events) == "ab"
    assert events[-1] == Done("length", 3, 9)


async def test_decodes_go_on_while_a_long_prompt_is_read(start_worker: StartWorker) -> None:
    model = ScriptedModel(lambda seen: 97)
    worker = start_worker(model)
    worker.scheduler.costs.row_s = 1.0  # so that a piece is of the fewest tokens
    first = worker.open(PROMPT, GREEDY, 200)
    assert isinstance(await first.events.get(), Started)
    long = worker.open([5] * 200, GREEDY, 1)
    await events_of(long)
    worker.cancel(first)
    await events_of(first)
    reading = [step for step in model.steps if any(len(piece.tokens) > 1 for piece in step) and len(step) > 1]
    assert len(reading) > 5
    assert all(any(len(piece.tokens) == 1 for piece in step) for step in reading)


async def test_a_waiting_request_gets_the_slot_of_one_that_ends(start_worker: StartWorker, tokens: Tokens) -> None:
    worker = start_worker(says(tokens, "hello"), small_cache(slots=1))
    streams = [worker.open(list(PROMPT), GREEDY, 50) for _ in range(5)]
    assert {text_of(await events_of(stream)) for stream in streams} == {"hello"}


@pytest.mark.parametrize("phase", ["waiting", "prefill", "decode"])
async def test_cancelling_in_each_phase_frees_the_slot(start_worker: StartWorker, phase: str) -> None:
    cache = small_cache(slots=1)
    model = ScriptedModel(lambda seen: 97)
    worker = start_worker(model, cache)
    worker.scheduler.costs.row_s = 1.0
    holder = worker.open(PROMPT, GREEDY, 250)
    stream = worker.open([5] * 250, GREEDY, 1) if phase == "waiting" else holder
    if phase == "prefill":
        worker.cancel(holder)
        stream = worker.open([5] * 250, GREEDY, 1)
    if phase == "decode":
        await stream.events.get()
    worker.cancel(stream)
    worker.cancel(holder)
    assert (await events_of(stream))[-1] is None
    await settled(worker)
    assert cache.in_use == 0
    assert [] not in model.steps  # a step without rows ends the process where weights are multiplied as they are packed


async def test_a_thousand_starts_and_cancels_leave_no_slot_used(start_worker: StartWorker) -> None:
    chance = random.Random(1)
    cache = small_cache(slots=3)
    worker = start_worker(ScriptedModel(lambda seen: 97 if len(seen) % 11 else 270), cache)
    streams = []
    for _ in range(1000):
        stream = worker.open(
            [chance.randrange(90) for _ in range(chance.randrange(1, 40))], GREEDY, chance.randrange(1, 20)
        )
        streams.append(stream)
        if chance.random() < 0.7:
            worker.cancel(chance.choice(streams[-5:]))
        if chance.random() < 0.1:
            await stream.events.get()
    for stream in streams:
        worker.cancel(stream)
    await settled(worker)
    assert cache.in_use == 0
    assert worker.health() is None


@pytest.mark.parametrize("step", [0, 1, 2])
@pytest.mark.parametrize(
    "error",
    [RuntimeError("broken"), torch.OutOfMemoryError("CUDA out of memory."), MemoryError()],
    ids=lambda e: type(e).__name__,
)
async def test_a_failing_step_fails_what_is_open_and_the_next_request_works(
    start_worker: StartWorker, tokens: Tokens, step: int, error: Exception
) -> None:
    """Before, at and after the first token."""
    model, cache = says(tokens, "hello world"), small_cache()
    worker = start_worker(model, cache)
    model.steps.clear()

    def fail_once() -> None:
        if len(model.steps) == step:
            model.before_step = lambda: None
            raise error

    model.before_step = fail_once
    events = await events_of(worker.open(list(PROMPT), GREEDY, 50))
    assert isinstance(events[-1], BackendFailed)
    assert ("memory" in str(events[-1])) == (not isinstance(error, RuntimeError) or "memory" in str(error))
    assert text_of(events) == ["", "hello", "hello world"][step]
    assert text_of(await events_of(worker.open(list(PROMPT), GREEDY, 50))) == "hello world"
    assert cache.in_use == 0


async def test_a_device_that_is_broken_for_good_is_told_and_never_hangs(
    start_worker: StartWorker, tokens: Tokens
) -> None:
    model = says(tokens, "hello")
    worker = start_worker(model)

    def broken() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    model.before_step = broken
    assert isinstance((await events_of(worker.open(PROMPT, GREEDY, 50)))[-1], BackendFailed)
    await asyncio.to_thread(worker._thread.join, 30)
    assert "restart" in (worker.health() or "")
    with pytest.raises(NotReady):
        worker.open(PROMPT, GREEDY, 50)


async def test_one_request_that_cannot_go_on_leaves_the_others_alone(start_worker: StartWorker, tokens: Tokens) -> None:
    worker = start_worker(says(tokens, "hello world"))
    good, bad = worker.open(list(PROMPT), GREEDY, 50), worker.open(list(PROMPT), GREEDY, 50)

    def fail(token: int) -> str:
        raise UnicodeError("broken")

    bad.text.push = fail  # type: ignore[method-assign]  # the fault of one request's own work
    assert isinstance((await events_of(bad))[-1], BackendFailed)
    assert text_of(await events_of(good)) == "hello world"


async def test_stopping_ends_every_stream(start_worker: StartWorker) -> None:
    worker = start_worker(ScriptedModel(lambda seen: 97), small_cache(slots=1))
    streams = [worker.open(PROMPT, GREEDY, 250), worker.open(list(PROMPT), GREEDY, 250)]
    await streams[0].events.get()
    await asyncio.to_thread(worker.stop)
    for stream in streams:
        last = (await events_of(stream))[-1]
        assert isinstance(last, NotReady)
        assert last.code == "draining"


async def test_a_cached_prefix_gives_the_same_answer(start_worker: StartWorker, tiny_model: Qwen2) -> None:
    """Asked again, as a next turn, and by somebody with the same beginning, against a cache that knows nothing."""
    prompts = [[*range(40)], [*range(40), 50, 51], [*range(30), 60, 61, 62]]
    fresh = []
    for prompt in prompts:
        worker = start_worker(tiny_model, KVCache(tiny_model.shape, 2, 128, CPU, tiny_model.dtype))
        fresh.append(text_of(await events_of(worker.open(list(prompt), GREEDY, 20))))
    worker = start_worker(tiny_model, KVCache(tiny_model.shape, 2, 128, CPU, tiny_model.dtype))
    for expected, prompt, cached in zip(fresh, prompts, (0, 40, 30), strict=True):
        events = await events_of(worker.open(list(prompt), GREEDY, 20))
        assert text_of(events) == expected
        assert events[0] == Started(len(prompt), cached)


async def test_what_every_next_turn_begins_with_is_read_while_nobody_asks(
    start_worker: StartWorker, tokens: Tokens
) -> None:
    prompt, hello, loop = [tokens.start, 1, 2], tokens.encode("hello"), asyncio.get_running_loop()
    model, stepped = says(tokens, "hello"), asyncio.Queue[None]()
    worker = start_worker(model)

    def count() -> None:
        loop.call_soon_threadsafe(stepped.put_nowait, None)

    model.before_step = count
    await events_of(worker.open(prompt, GREEDY, 50))
    for _ in ("the prompt", "hello", "what is ahead"):
        await asyncio.wait_for(stepped.get(), 60)
    turn = [*prompt, *hello, tokens.end, *tokens.encode("\n"), tokens.start, *tokens.encode("user\n"), 5]
    events = await events_of(worker.open(turn, GREEDY, 1))
    assert events[0] == Started(len(turn), len(turn) - 1)
    assert len(model.steps[-1][0].tokens) == 1


async def test_nothing_is_read_ahead_of_a_text_that_is_no_conversation(
    start_worker: StartWorker, tokens: Tokens
) -> None:
    cache = small_cache()
    worker = start_worker(says(tokens, "hello"), cache)
    await events_of(worker.open(PROMPT, GREEDY, 50))
    await settled(worker)
    assert cache.to_read_ahead() is None


async def test_batched_answers_equal_single_ones(start_worker: StartWorker, tiny_model: Qwen2) -> None:
    single, batched = await alone_and_together(start_worker, tiny_model)
    assert single == batched
    assert len({tuple(tokens) for tokens in batched}) == len(batched)


async def test_in_bfloat16_they_part_only_where_two_tokens_are_as_likely(
    start_worker: StartWorker, ready: Path
) -> None:
    packed = Qwen2.read(ready, CPU, unpack=False)
    for one, other in zip(*await alone_and_together(start_worker, packed), strict=True):
        assert parts_only_at_a_tie(packed, one, other)


async def alone_and_together(start_worker: StartWorker, model: Qwen2) -> tuple[list[list[int]], list[list[int]]]:
    """The tokens of eight prompts of different lengths with their answers, computed one by one, and all at once."""
    prompts = [[(i * k) % 256 for i in range(10 + 3 * k)] for k in range(1, 9)]
    worker = start_worker(model, KVCache(model.shape, 8, 128, CPU, model.dtype))
    single = []
    for prompt in prompts:
        single.append(worker.open(prompt, GREEDY, 24))
        await events_of(single[-1])
    worker = start_worker(model, KVCache(model.shape, 8, 128, CPU, model.dtype))
    batched = [worker.open(prompt, GREEDY, 24) for prompt in prompts]
    for stream in batched:
        await events_of(stream)
    return [stream.tokens for stream in single], [stream.tokens for stream in batched]


def parts_only_at_a_tie(model: Qwen2, one: list[int], other: list[int]) -> bool:
    """Whether two answers are the same, or the first tokens that differ have the same logit but for the noise."""
    parting = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    if parting is None:
        return len(one) == len(other)
    cache = KVCache(model.shape, 1, 128, CPU, model.dtype)
    logits = model.step([Piece(0, 0, one[:parting], logits=1)], cache)[0].float()
    return bool((logits[one[parting]] - logits[other[parting]]).abs() < 0.05 * logits.std())
