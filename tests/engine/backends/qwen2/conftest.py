"""A tiny model on disk, its ready folder, and a model that follows a script, for the tests of the engine's parts."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import torch

from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.quantize import ready_folder
from engine.backends.qwen2.ready import Shape
from engine.backends.qwen2.stepping import Model
from engine.backends.qwen2.tokens import Tokens
from engine.backends.qwen2.worker import Worker
from tests.engine.backends.qwen2.tiny import VOCABULARY, make_tiny, tiny_source

CPU = torch.device("cpu")

if "PYTEST_XDIST_WORKER" in os.environ:  # others work beside; two threads would wait for each other, and burn a core
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(tmp_path_factory.mktemp("tiny") / "tiny-qwen2")


@pytest.fixture(scope="session")
def ready(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ready_folder(tiny_source(tiny_folder), "nf4", tmp_path_factory.mktemp("models"), CPU, lambda _: None)


@pytest.fixture(scope="session")
def tokens(ready: Path) -> Tokens:
    return Tokens(ready)


@pytest.fixture(scope="session")
def tiny_model(ready: Path) -> Qwen2:
    return Qwen2.read(ready, CPU, unpack=True)


class ScriptedModel:
    """A model whose next token is `answer(tokens so far)`; `before_step` may raise what a device would."""

    device = CPU

    def __init__(self, answer: Callable[[list[int]], int]) -> None:
        self.answer = answer
        self.before_step: Callable[[], None] = lambda: None
        self.steps: list[list[Piece]] = []
        self._slots: dict[int, list[int]] = {}

    def step(self, pieces: Sequence[Piece], cache: KVCache) -> torch.Tensor:
        self.before_step()
        self.steps.append(list(pieces))
        rows = []
        for piece in pieces:
            seen = self._slots[piece.slot] = [*self._slots.get(piece.slot, [])[: piece.start], *piece.tokens]
            for length in range(piece.end - piece.logits + 1, piece.end + 1):
                row = torch.zeros(VOCABULARY)
                row[self.answer(seen[:length])] = 100.0
                rows.append(row)
        return torch.stack(rows) if rows else torch.empty(0, VOCABULARY)


def small_cache(slots: int = 4, capacity: int = 256) -> KVCache:
    return KVCache(tiny_shape(), slots, capacity, CPU, torch.float32)


def tiny_shape() -> Shape:
    return Shape(
        hidden=8,
        layers=1,
        heads=2,
        kv_heads=1,
        head_size=4,
        vocabulary=VOCABULARY,
        context_tokens=256,
        norm_epsilon=1e-6,
        rope_theta=10_000.0,
        end_tokens=(270,),
        tied=False,
    )


StartWorker = Callable[..., Worker]


@pytest.fixture
def start_worker(tokens: Tokens) -> Iterator[StartWorker]:
    """Start a worker around a model; it is stopped after the test."""
    workers = []

    def start(model: Model, cache: KVCache | None = None, lookahead: int = 7) -> Worker:
        worker = Worker(model, cache or small_cache(), tokens, frozenset(tokens.ends), threads=1, lookahead=lookahead)
        workers.append(worker)
        worker.start()
        return worker

    yield start
    for worker in workers:
        worker.stop()
