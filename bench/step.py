"""Where the time of a step goes: the linears alone beside the whole step, by number of sequences; and prefill.

    python -m bench.step                        as many threads as the engine takes here
    python -m bench.step --threads 1 2 4 8      which number of them suits this machine

Prefill of a short and of a long prompt stands beside transformers' own forward pass on the same weights, both in 4
bits, and beside llama.cpp's on the GGUF that they come from, where llama-cpp-python is installed. Only the last token's
logits are wanted. bench.capacity reads what the first number of threads came to.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import torch

from bench.linears import CPU, load_model, step_s
from bench.report import save
from bench.weights import packaged_gguf, transformers_nf4
from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2
from engine.hardware import physical_cores
from engine.settings import Settings

ROUNDS, CONTEXT, PIECE = 7, 200, 256
LENGTHS = (PIECE, 12 * PIECE)  # of prompts, tokens
READINGS = 3  # of a prompt, which takes longer

Steps = dict[str, list[float]]  # seconds, by what was done
Read = Callable[[int], object]
OURS = "qdesk"


def steps_s(model: Qwen2, cache: KVCache) -> Steps:
    """Of decodes: the linears alone, and the whole step."""
    found: Steps = {}
    for count in (1, 8, 16):
        pieces = [Piece(slot, CONTEXT, [5], logits=1) for slot in range(count)]
        step_s(model, count)
        alone = statistics.median(step_s(model, count) for _ in range(ROUNDS))
        model.step(pieces, cache)
        whole = statistics.median(_timed(partial(model.step, pieces, cache)) for _ in range(ROUNDS))
        found[f"{count} sequences"] = [alone, whole]
    return found


@torch.inference_mode()
def prefill_s(ways: dict[str, Read]) -> Steps:
    """Of each token of a prompt, by the length of it and by who reads it, in turn."""
    found: Steps = {}
    for length in LENGTHS:
        for way in ways.values():
            way(PIECE)
        readings = [[_timed(partial(way, length)) for way in ways.values()] for _ in range(READINGS)]
        for name, seconds in zip(ways, zip(*readings, strict=True), strict=True):
            found[_prefill(length, name)] = [statistics.median(seconds) / length]
    return found


def _prefill(length: int, name: str = OURS) -> str:
    return "prefill of a token" + (f" of {length}" if length != PIECE else "") + (f", {name}" if name != OURS else "")


def readers(model: Qwen2, cache: KVCache, theirs: Any) -> dict[str, Read]:
    """Each reads so many tokens."""

    def ours(length: int) -> None:
        for start in range(0, length, PIECE):
            model.step([Piece(0, start, [5] * PIECE, logits=1, is_prompt=True)], cache)

    found: dict[str, Read] = {
        OURS: ours,
        "transformers": lambda length: theirs(torch.full((1, length), 5), logits_to_keep=1),
    }
    try:
        from llama_cpp import Llama
    except ImportError:
        print("Left out: llama.cpp (llama-cpp-python is not installed).")
        return found
    threads = torch.get_num_threads()
    llama: Any = Llama(
        str(packaged_gguf()), n_ctx=max(LENGTHS), n_threads=threads, n_threads_batch=threads, verbose=False
    )

    def llamas(length: int) -> None:
        llama.reset()
        llama.eval([5] * length)

    return found | {"llama.cpp": llamas}


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _lines(threads: int, found: Steps, peers: Sequence[str]) -> tuple[list[str], list[str]]:
    """Of the table of steps, and of that of prefill."""
    steps = []
    for name, (alone, *rest) in found.items():
        for whole in rest:
            count = int(name.split()[0])
            times = f"{alone * 1e3:.0f} | {whole * 1e3:.0f} | {alone / whole:.0%} | {count / whole:.1f}"
            steps.append(f"| {threads} | {count} | {times} |")
    prefill = []
    for length in LENGTHS:
        [ours] = found[_prefill(length)]
        theirs = [found[_prefill(length, peer)][0] for peer in peers]
        cells = "".join(f" {other * 1e3:.1f} | {ours / other:.2f} |" for other in theirs)
        prefill.append(f"| {threads} | {length} | {ours * 1e3:.1f} |{cells}")
    return steps, prefill


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[Settings().threads or physical_cores()])
    asked, began = parser.parse_args(), datetime.now(UTC)
    theirs, model = transformers_nf4(), load_model()
    cache = KVCache(model.shape, 16, max(LENGTHS), CPU, model.dtype)
    ways = readers(model, cache, theirs)
    peers = [name for name in ways if name != OURS]
    figures: dict[str, Steps] = {}
    steps = [
        "| threads | sequences | linears alone, ms | whole step, ms | share | tokens/s |",
        "|---|---|---|---|---|---|",
    ]
    columns = "".join(f" {peer}', ms | ratio |" for peer in peers)
    prefill = [f"| threads | tokens | prefill of each, ms |{columns}", "|---|---|---|" + "---|---|" * len(peers)]
    for threads in asked.threads:
        torch.set_num_threads(threads)
        found = figures[f"{threads} threads"] = steps_s(model, cache) | prefill_s(ways)
        more, read = _lines(threads, found, peers)
        steps += more
        prefill += read
        print("\n".join([*more, *read]), flush=True)
    save(began, "\n".join([*steps, "", *prefill]), figures)


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
