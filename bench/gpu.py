"""The checks that need a GPU, in one script of less than eight minutes, on random weights and without a network.

    python -m bench.gpu                                           both shapes
    python -m bench.gpu --size tiny --device cpu --streams 1 4 --tokens 8 --prompt 100 --context 256 --cancel 20

The second is a dry run of every part where there is no GPU; its figures mean nothing. What fails is written down as
that and hinders no other part, and what comes after the time is over is left out.
"""

import argparse
import asyncio
import random
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import Qwen2ForCausalLM

from bench.gpu_peers import batched_tokens_per_s, threads_tokens_per_s
from bench.random_models import SIZES, ours, quantize_in_place, random_model
from bench.report import save
from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.graphs import GraphedModel, graphed
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.quantize import ready_folder
from engine.backends.qwen2.stream import Stream
from engine.backends.qwen2.tokens import Tokens
from engine.backends.qwen2.worker import Worker
from engine.errors import BackendFailed, EngineError
from engine.types import Done, Event, Sampling
from tests.engine.backends.qwen2.tiny import make_tiny, tiny_source

GREEDY = Sampling(temperature=0, repetition_penalty=1, ignore_eos=True)
LEFT_FREE = 256 << 20  # bytes of the GPU's memory while it is short


@dataclass
class Checks:
    """What is asked, and what has been found."""

    asked: argparse.Namespace
    device: torch.device
    until: float
    found: dict[str, Any] = field(default_factory=dict)

    def check(self, name: str, work: Callable[[], object]) -> None:
        began = time.monotonic()
        if began > self.until:
            self.found[name] = "left out: the time is over"
        else:
            try:
                self.found[name] = work()
            except Exception as error:
                traceback.print_exc()
                self.found[name] = f"failed: {type(error).__name__}: {str(error)[:200]}"
        print(f"{name}: {self.found[name]} ({time.monotonic() - began:.1f} s)", flush=True)


class Serving:
    """A worker around a model; where there is no GPU, `short` stands for one whose memory suffices for 64 rows."""

    def __init__(self, model: Qwen2 | GraphedModel, cache: KVCache, tokens: Tokens, context: int) -> None:
        self.device, self._model, self._context = model.device, model, context
        self._short, self._random = False, random.Random(0)
        self.worker = Worker(self, cache, tokens, frozenset(), torch.get_num_threads(), lookahead=0)
        self.worker.start()

    def step(self, pieces: Any, cache: KVCache) -> torch.Tensor:
        if self._short and sum(len(piece.tokens) for piece in pieces) > 64:
            raise torch.OutOfMemoryError("as if")
        return self._model.step(pieces, cache)

    @contextmanager
    def short_of_memory(self) -> Iterator[None]:
        ballast = None
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            free = torch.cuda.mem_get_info(self.device)[0] - LEFT_FREE
            ballast = torch.empty(max(0, free), dtype=torch.uint8, device=self.device)
        self._short = ballast is None
        yield
        self._short = False
        del ballast

    def open(self, prompt_tokens: int, max_tokens: int) -> Stream:
        prompt = [self._random.randrange(1, 200) for _ in range(min(prompt_tokens, self._context - max_tokens))]
        return self.worker.open(prompt, GREEDY, max_tokens)

    async def end_of(self, stream: Stream) -> Event | EngineError | None:
        while not isinstance(event := await stream.events.get(), Done | EngineError | None):
            pass
        return event

    async def tokens_per_s(self, streams: int, tokens: int) -> float:
        began = time.perf_counter()
        ends = await asyncio.gather(*(self.end_of(self.open(64, tokens)) for _ in range(streams)))
        assert all(isinstance(end, Done) for end in ends), ends
        return streams * tokens / (time.perf_counter() - began)

    async def survive(self, prompt_tokens: int) -> str:
        """Many long prompts while memory is short: each is answered or told; then there is memory again."""
        with self.short_of_memory():
            ends = await asyncio.gather(*(self.end_of(self.open(prompt_tokens, 8)) for _ in range(16)))
        answered = sum(isinstance(end, Done) for end in ends)
        failed = sum(isinstance(end, BackendFailed) for end in ends)
        after = await self.end_of(self.open(64, 8))
        assert answered + failed == 16
        assert isinstance(after, Done)
        return f"{answered} answered, {failed} failed, the next one answered"

    async def cancel(self, count: int, prompt_tokens: int) -> str:
        """Long prompts, all cancelled while the first is read; seconds until a short question is answered."""
        streams = [self.open(prompt_tokens, 8) for _ in range(count)]
        await asyncio.sleep(0.1)
        began = time.perf_counter()
        for stream in streams:
            self.worker.cancel(stream)
        assert isinstance(await self.end_of(self.open(30, 1)), Done)
        return f"{time.perf_counter() - began:.3f} s"


def equal(ours: Qwen2, theirs: Any, cache: KVCache) -> str:
    """Logits after 64 tokens, and the static step beside the usual one; differences by the logits' spread."""
    ids = [(i * 37 + 11) % 200 for i in range(64)]
    usual = ours.step([Piece(0, 0, ids, logits=64)], cache).float()
    with torch.inference_mode():
        reference = theirs(torch.tensor([ids], device=ours.device)).logits[0].float()
    off = ((usual - reference).abs().mean() / reference.std()).item()
    same = (usual.argmax(-1) == reference.argmax(-1)).float().mean().item()
    one = [Piece(0, 63, ids[-1:], logits=1)]
    static = graphed(ours, cache).step(one, cache).float().clone()
    apart = ((static - ours.step(one, cache).float()).abs().max() / reference.std()).item()
    assert off < 0.1
    assert apart < 0.1
    return f"mean difference {off:.3f} of the spread, {same:.0%} of greedy tokens the same; static step {apart:.4f}"


def examine(size: str, checks: Checks, tokens: Tokens) -> None:
    theirs = random_model(SIZES[size], checks.device, checks.asked.context)
    examine_ours(size, checks, tokens, theirs)
    if checks.device.type == "cuda":
        torch.cuda.empty_cache()
    for count in checks.asked.streams:
        for name, peer in (("a thread each", threads_tokens_per_s), ("its batching", batched_tokens_per_s)):
            work = partial(peer, theirs, count, checks.asked.tokens)
            checks.check(f"{size}, {count} streams, transformers, {name}, tokens/s", work)


def examine_ours(size: str, checks: Checks, tokens: Tokens, theirs: Qwen2ForCausalLM) -> None:
    """Every check of our own; `theirs` has its linears in 4 bits afterwards."""
    asked, device = checks.asked, checks.device
    model = ours(theirs, device)
    quantize_in_place(theirs, device)
    before = _allocated(device)
    cache = KVCache(model.shape, asked.slots, asked.context, device, model.dtype)
    each = (_allocated(device) - before or cache.bytes) / asked.slots
    checks.found[f"{size}, memory of a slot, MiB"] = each / 2**20
    checks.check(f"{size}, equality", lambda: equal(model, theirs, cache))
    serving = Serving(graphed(model, cache), cache, tokens, asked.context)
    for count in asked.streams:
        for name in ("warm", "tokens/s"):
            checks.check(
                f"{size}, {count} streams, {name}",
                lambda count=count: asyncio.run(serving.tokens_per_s(count, asked.tokens)),  # type: ignore[misc]  # bound at once
            )
    checks.check(f"{size}, cancel {asked.cancel}", lambda: asyncio.run(serving.cancel(asked.cancel, asked.prompt)))
    checks.check(f"{size}, short of memory", lambda: asyncio.run(serving.survive(asked.prompt)))
    serving.worker.stop()


def _allocated(device: torch.device) -> int:
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else 0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs="+", choices=SIZES, default=["packaged", "qwen2-7b"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=3500, help="tokens of a long prompt")
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--cancel", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=440, help="nothing is begun after this time")
    asked = parser.parse_args(arguments)
    began, device = datetime.now(UTC), torch.device(asked.device)
    checks = Checks(asked, device, time.monotonic() + asked.seconds)
    with tempfile.TemporaryDirectory() as name:
        source = tiny_source(make_tiny(Path(name) / "tiny"))
        tokens = Tokens(ready_folder(source, "nf4", Path(name), torch.device("cpu"), lambda _: None))
    for size in asked.size:
        checks.check(f"{size}, all", partial(examine, size, checks, tokens))
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU: a dry run"
    lines = [f"{where}\n", "| what | found |", "|---|---|"]
    for name, value in checks.found.items():
        lines.append(f"| {name} | {f'{value:.1f}' if isinstance(value, float) else value} |")
    save(began, "\n".join(lines), {"device": where, **checks.found})


if __name__ == "__main__":
    main()
