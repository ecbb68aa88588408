"""The engine on CUDA: the same logits, graphs that replay them, memory that runs out, and a device that asserts."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.graphs import GraphedModel, graphed
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.tokens import Tokens
from engine.backends.qwen2.worker import Worker
from engine.errors import BackendFailed
from engine.types import Done
from tests.engine.backends.qwen2.reference import in_transformers
from tests.engine.backends.qwen2.test_qwen2_model import IDS
from tests.engine.backends.qwen2.test_qwen2_worker import GREEDY, events_of
from tests.gpu.conftest import CUDA


def cache_for(model: Qwen2) -> KVCache:
    return KVCache(model.shape, 8, 300, CUDA, model.dtype)


def apart(ours: torch.Tensor, theirs: torch.Tensor) -> float:
    """The mean difference, by the spread of the logits."""
    return float((ours.float() - theirs.float()).abs().mean() / theirs.float().std())


@torch.inference_mode()
def test_logits_equal_transformers(on_gpu: Path, model: Qwen2) -> None:
    reference: Any = in_transformers(on_gpu)
    reference.to(device="cuda")
    theirs = reference(torch.tensor([IDS], device=CUDA)).logits[0]
    cache = cache_for(model)
    assert (
        apart(model.step([Piece(2, 0, IDS, logits=60)], cache), theirs) < 0.05
    )  # the first tokens, by flash attention
    model.step([Piece(1, 0, IDS[:20], logits=0)], cache)
    assert apart(model.step([Piece(1, 20, IDS[20:], logits=40)], cache), theirs[20:]) < 0.05  # and what follows


def test_graphs_are_recorded_and_replay_the_usual_step(model: Qwen2) -> None:
    usual, static = cache_for(model), cache_for(model)
    lengths = {0: 5, 3: 40, 1: 11}
    for cache in (usual, static):
        for slot, length in lengths.items():
            model.step([Piece(slot, 0, IDS[:length], logits=0)], cache)
    replaying = graphed(model, KVCache(model.shape, 8, 300, CUDA, model.dtype))
    assert isinstance(replaying, GraphedModel)
    assert len(replaying._graphs) == len(replaying.batches) * len(replaying.lengths)
    recorded = GraphedModel(model, static)
    recorded.record()
    for slot, length in lengths.items():  # recording has written where slot 0 begins
        model.step([Piece(slot, 0, IDS[:length], logits=0)], static)
    for at in range(3):
        decodes = [Piece(slot, length + at, [IDS[length + at]], logits=1) for slot, length in lengths.items()]
        assert apart(recorded.step(decodes, static), model.step(decodes, usual)) < 0.02


async def test_out_of_memory_fails_what_does_not_fit_and_goes_on(on_gpu: Path, model: Qwen2) -> None:
    cache = cache_for(model)
    worker = Worker(graphed(model, cache), cache, Tokens(on_gpu), frozenset(), threads=1, lookahead=0)
    worker.start()
    torch.cuda.empty_cache()
    ballast = torch.empty(torch.cuda.mem_get_info(CUDA)[0] - (8 << 20), dtype=torch.uint8, device=CUDA)
    ends = [(await events_of(worker.open(IDS * 3, GREEDY, 20)))[-1] for _ in range(4)]
    assert all(isinstance(end, Done | BackendFailed) for end in ends)
    del ballast
    torch.cuda.empty_cache()
    assert isinstance((await events_of(worker.open(IDS, GREEDY, 20)))[-1], Done)
    assert (cache.in_use, worker.health()) == (0, None)
    worker.stop()


def test_an_assertion_of_the_device_is_told_and_ends_the_thread(on_gpu: Path) -> None:
    """In a process of its own, whose device is lost by it."""
    program = f"""
import asyncio
from pathlib import Path
from typing import Any
from tests.engine.backends.qwen2.test_qwen2_worker import GREEDY, events_of
from tests.gpu.conftest import CUDA
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.tokens import Tokens
from engine.backends.qwen2.worker import Worker

async def main():
    folder = Path({str(on_gpu)!r})
    model = Qwen2.read(folder, CUDA, unpack=False)
    worker = Worker(model, KVCache(model.shape, 4, 128, CUDA, model.dtype), Tokens(folder), frozenset(), 1, 0)
    worker.start()
    good, bad = worker.open([1, 2, 3], GREEDY, 100), worker.open([10**6], GREEDY, 5)  # no such token
    print(type((await events_of(bad))[-1]).__name__, type((await events_of(good))[-1]).__name__)
    print(await asyncio.wait_for(asyncio.wrap_future(worker.broken), 60))

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200)
    assert done.stdout.splitlines()[0] == "BackendFailed BackendFailed", done.stderr[-2000:]
    assert "restart the server" in done.stdout
