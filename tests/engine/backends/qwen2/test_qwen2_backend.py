"""The backend as the service sees it, on a tiny model: start, stream, limits, cancel, stop."""

import asyncio
import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.backends import KnowsCache, KnowsMemory, KnowsStreams, create_backend
from engine.backends.qwen2 import Qwen2Backend
from engine.backends.qwen2.loading import RESERVE, SPARE_SLOTS, Engine, make_cache, room_for_cache
from engine.backends.qwen2.ready import WEIGHTS
from engine.errors import ContextOverflow, EngineError, NotReady
from engine.service import ChatService
from engine.types import ChatRequest, Delta, Done, Event, Message, Sampling, Started, Status
from tests.engine.backends.qwen2.conftest import CPU, tiny_shape
from tests.engine.backends.qwen2.tiny import make_tiny, tiny_settings
from tests.engine.kit import MemoryRecorder, ended, running, until

LONG = Sampling(temperature=0, ignore_eos=True)


@pytest.fixture(scope="module")
def models_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture
async def backend(tiny_folder: Path, models_dir: Path) -> AsyncIterator[Qwen2Backend]:
    backend = Qwen2Backend(tiny_settings(tiny_folder, models_dir))
    await backend.start(lambda _: None)
    yield backend
    await backend.stop()


def ask(text: str, sampling: Sampling = LONG) -> ChatRequest:
    return ChatRequest(messages=(Message("user", text),), person=None, source="api", sampling=sampling)


def file_bytes(models_dir: Path) -> int:
    """Of the weights that were made ready there."""
    return next(models_dir.rglob(WEIGHTS)).stat().st_size


async def answer(backend: Qwen2Backend, request: ChatRequest) -> list[Event]:
    return [event async for event in backend.stream(request)]


async def test_only_the_generation_thread_computes_with_several_threads(tiny_folder: Path, models_dir: Path) -> None:
    """With more of them than processors each would sleep where it has to wait for another (docs/performance.md)."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    backend = Qwen2Backend(tiny_settings(tiny_folder, models_dir, threads=2))
    try:
        await backend.start(lambda _: None)
        assert torch.get_num_threads() == 1  # the event loop's
        assert await asyncio.to_thread(torch.get_num_threads) == 1
        loading = [thread for thread in threading.enumerate() if thread.name.startswith("loading")]
        for thread in loading:
            await asyncio.to_thread(thread.join, 30)
        assert not [thread for thread in loading if thread.is_alive()]
        assert "generation" in {thread.name for thread in threading.enumerate()}
    finally:
        await backend.stop()
        torch.set_num_threads(before)


async def test_it_answers_and_says_what_it_runs(backend: Qwen2Backend) -> None:
    assert (backend.model, backend.quantization, backend.context_tokens) == ("tiny-qwen2", "nf4", 256)
    assert backend.capacity >= backend.settings.max_concurrent_requests
    assert backend.reason
    assert backend.health() is None
    events = await answer(backend, ask("hello world", Sampling(max_tokens=5, ignore_eos=True)))
    prompt_tokens = backend.count_tokens([Message("user", "hello world")])
    assert events[0] == Started(prompt_tokens)
    assert events[-1] == Done("length", prompt_tokens, 5)
    assert sum(event.tokens for event in events if isinstance(event, Delta)) <= 5


async def test_it_says_what_its_memory_is_for(tiny_folder: Path, models_dir: Path) -> None:
    backend = Qwen2Backend(tiny_settings(tiny_folder, models_dir, kv_cache_mb=1))
    assert isinstance(backend, KnowsMemory)
    assert (backend.weights_bytes, backend.cache_bytes) == (0, 0)
    await backend.start(lambda _: None)
    assert 0 < file_bytes(models_dir) - backend.weights_bytes < 100_000  # the file's head
    assert 0 < backend.cache_bytes <= 1 << 20
    await backend.stop()


async def test_prompts_at_the_edge_of_the_context(backend: Qwen2Backend) -> None:
    base = backend.count_tokens([Message("user", "")])
    for length, spare in ((255 - base, 1), (200 - base, 56)):
        done = (await answer(backend, ask("x" * length)))[-1]
        assert isinstance(done, Done)
        assert (done.finish_reason, done.prompt_tokens, done.completion_tokens) == ("length", 256 - spare, spare)
    for length in (256 - base, 257 - base, 2560):
        with pytest.raises(ContextOverflow, match="holds 256"):
            await answer(backend, ask("x" * length))


async def test_streams_interleave_and_closing_one_frees_its_slot(backend: Qwen2Backend) -> None:
    async with aclosing(backend.stream(ask("first"))) as first, aclosing(backend.stream(ask("second"))) as second:
        for _ in range(3):
            await anext(first)
            await anext(second)
    assert backend._engine
    await answer(backend, ask("third", Sampling(max_tokens=1)))
    assert backend._engine.cache.in_use == 0


async def test_the_same_seed_gives_the_same_text(backend: Qwen2Backend) -> None:
    def seeded(seed: int) -> ChatRequest:
        return ask("hello", Sampling(seed=seed, temperature=1.5, top_k=0, top_p=1, max_tokens=20, ignore_eos=True))

    def text(events: list[Event]) -> str:
        return "".join(event.text for event in events if isinstance(event, Delta))

    alone = text(await answer(backend, seeded(5)))
    together = await asyncio.gather(*[answer(backend, seeded(seed)) for seed in (1, 5, 5, 9)])
    assert [text(events) == alone for events in together] == [False, True, True, False]


async def test_before_the_start_and_after_the_end_it_is_not_ready(tiny_folder: Path, models_dir: Path) -> None:
    backend = Qwen2Backend(tiny_settings(tiny_folder, models_dir))
    assert "loading" in (backend.health() or "")
    with pytest.raises(NotReady):
        await answer(backend, ask("hello"))
    await backend.stop()
    await backend.stop()
    assert "stopped" in (backend.health() or "")


async def test_stopping_ends_an_open_stream(tiny_folder: Path, models_dir: Path) -> None:
    backend = Qwen2Backend(tiny_settings(tiny_folder, models_dir))
    await backend.start(lambda _: None)
    stream = backend.stream(ask("hello"))
    await anext(stream)
    await backend.stop()
    with pytest.raises(NotReady):
        _ = [event async for event in stream]


async def test_a_device_that_is_not_there_is_said(tiny_folder: Path, models_dir: Path) -> None:
    backend = Qwen2Backend(tiny_settings(tiny_folder, models_dir, device="cuda:99"))
    with pytest.raises(EngineError, match="QDESK_DEVICE is cuda:99"):
        await backend.start(lambda _: None)


def test_the_cache_is_as_large_as_the_setting_allows(tiny_folder: Path, models_dir: Path) -> None:
    shape = replace(tiny_shape(), layers=64)  # 1 KiB a token, 256 KiB a slot
    settings = tiny_settings(tiny_folder, models_dir, max_concurrent_requests=3)
    assert len(make_cache(shape, settings, CPU, torch.bfloat16).slots) == 3 + SPARE_SLOTS
    bounded = settings.model_copy(update={"kv_cache_mb": 1})
    assert make_cache(shape, bounded, CPU, torch.bfloat16).bytes == 1 << 20
    with pytest.raises(EngineError, match="raise QDESK_KV_CACHE_MB"):
        make_cache(replace(shape, layers=6400), bounded, CPU, torch.bfloat16)


def test_a_gpu_keeps_a_reserve_and_a_cpu_half_of_its_memory() -> None:
    gpu, gib = torch.device("cuda"), 1 << 30
    assert room_for_cache(8 * gib, gpu) == 8 * gib - RESERVE
    assert room_for_cache(100 * gib, gpu) == 90 * gib
    assert room_for_cache(gib, gpu) == 0
    assert room_for_cache(8 * gib, CPU) == 4 * gib


async def test_a_later_start_loads_neither_compiler_nor_transformers(tiny_folder: Path, models_dir: Path) -> None:
    """They would cost ten seconds."""
    first = Qwen2Backend(tiny_settings(tiny_folder, models_dir))
    await first.start(lambda _: None)
    await first.stop()
    program = f"""
import asyncio, sys
from pathlib import Path
from engine.backends.qwen2 import Qwen2Backend
from engine.settings import Settings

async def main():
    settings = Settings(model={str(tiny_folder)!r}, models_dir=Path({str(models_dir)!r}), device="cpu")
    backend = Qwen2Backend(settings)
    await backend.start(lambda _: None)
    print(sorted({{"torch._dynamo", "torch._inductor", "transformers"}} & sys.modules.keys()))
    await backend.stop()

asyncio.run(main())
"""
    run = asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (await run).stdout.splitlines()[-1] == "[]"


async def test_another_folder_answers_who_waits_and_the_weights_before_it_are_gone(
    tiny_folder: Path, models_dir: Path, tmp_path: Path
) -> None:
    other = make_tiny(tmp_path / "other-qwen2", seed=1)
    settings = tiny_settings(tiny_folder, models_dir, models=str(other), max_concurrent_requests=1, drain_s=60)
    recorder, before = MemoryRecorder(), set(threading.enumerate())
    service = ChatService(settings, create_backend(settings), recorder)
    await service.start()
    assert_load_is_timed(service)
    weights = weakref.ref(loaded(service).worker._model)
    runs, waits = await service.submit(ask("hello")), await service.submit(ask("hello"))
    await until(runs, running)
    gc.disable()  # they must go by themselves, before others take as much memory
    await service.switching.begin(str(other))
    gc.enable()
    for job in (runs, waits):
        assert (await ended(job)).status is Status.DONE
    assert [recorder.last(job).model for job in (runs, waits)] == ["tiny-qwen2", "other-qwen2"]
    assert runs.text != waits.text
    assert weights() is None
    assert_load_is_timed(service)
    await service.stop()
    assert "generation" not in [thread.name for thread in set(threading.enumerate()) - before]


def loaded(service: ChatService) -> Engine:
    assert isinstance(service.backend, Qwen2Backend)
    assert service.backend._engine
    return service.backend._engine


def assert_load_is_timed(service: ChatService) -> None:
    """As the page of the model shows it: the whole, and of that the warming up."""
    assert service.load_s
    assert service.warm_up_s
    assert 0 < service.warm_up_s < service.load_s


async def test_it_tells_where_a_stream_lies_and_how_full_the_cache_is(backend: Qwen2Backend) -> None:
    assert isinstance(backend, KnowsStreams)
    assert isinstance(backend, KnowsCache)
    request = ask("hello")
    assert backend.look(request.id) is None
    prompt_tokens = backend.count_tokens(request.messages)
    async with aclosing(backend.stream(request)) as events:
        await anext(events)
        look = backend.look(request.id)
        assert look is not None
        assert (look.prompt_tokens, look.read_tokens, look.cached_tokens) == (prompt_tokens, prompt_tokens, 0)
        assert look.slot is not None
        use = backend.cache_use()
        assert use is not None
        assert (use.slots_used, use.slots, use.room) == (1, backend.capacity, backend.capacity * 256)
        assert use.used >= prompt_tokens
    assert backend.look(request.id) is None
    await answer(backend, replace(ask("another"), sampling=Sampling(max_tokens=1)))  # the thread has let go meanwhile
    after = backend.cache_use()
    assert after is not None
    assert (after.used, after.slots_used) == (0, 0)
    assert after.kept >= prompt_tokens
