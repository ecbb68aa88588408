"""Where the time of a step goes: the linears alone beside the whole step, by number of sequences; and prefill.

    python -m bench.step                        as many threads as the engine takes here
    python -m bench.step --threads 1 2 4 8      which number of them suits this machine

Prefill stands beside transformers' own forward pass on the same weights, both in 4 bits, of which only the last token's
logits are wanted. bench.capacity reads what the first number of threads came to.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import torch

from bench.linears import CPU, load_model, step_s
from bench.report import save
from bench.weights import transformers_nf4
from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2
from engine.hardware import physical_cores
from engine.settings import Settings

ROUNDS, CONTEXT, PIECE = 7, 200, 256
READINGS = 3  # of a prompt, which takes longer

Steps = dict[str, list[float]]  # seconds, by what was done


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
def prefill_s(model: Qwen2, cache: KVCache, theirs: Any) -> Steps:
    """Of each of PIECE tokens: ours and transformers', in turn."""
    ways: list[Callable[[], object]] = [
        partial(model.step, [Piece(0, 0, [5] * PIECE, logits=1)], cache),
        partial(theirs, torch.full((1, PIECE), 5), logits_to_keep=1),
    ]
    for way in ways:
        way()
    readings = [[_timed(way) for way in ways] for _ in range(READINGS)]
    ours, others = (statistics.median(seconds) / PIECE for seconds in zip(*readings, strict=True))
    return {"prefill of a token": [ours], "prefill of a token, transformers": [others]}


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _lines(threads: int, found: Steps) -> tuple[list[str], str]:
    """Of the table of steps, and of that of prefill."""
    steps = []
    for name, (alone, *rest) in found.items():
        for whole in rest:
            count = int(name.split()[0])
            times = f"{alone * 1e3:.0f} | {whole * 1e3:.0f} | {alone / whole:.0%} | {count / whole:.1f}"
            steps.append(f"| {threads} | {count} | {times} |")
    [ours], [theirs] = found["prefill of a token"], found["prefill of a token, transformers"]
    return steps, f"| {threads} | {ours * 1e3:.1f} | {theirs * 1e3:.1f} | {ours / theirs:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, nargs="+", default=[Settings().threads or physical_cores()])
    asked, began = parser.parse_args(), datetime.now(UTC)
    theirs, model = transformers_nf4(), load_model()
    cache = KVCache(model.shape, 16, 1024, CPU, model.dtype)
    figures: dict[str, Steps] = {}
    steps = [
        "| threads | sequences | linears alone, ms | whole step, ms | share | tokens/s |",
        "|---|---|---|---|---|---|",
    ]
    prefill = [
        f"| threads | a token's prefill in pieces of {PIECE}, ms | transformers', ms | ratio |",
        "|---|---|---|---|",
    ]
    for threads in asked.threads:
        torch.set_num_threads(threads)
        found = figures[f"{threads} threads"] = steps_s(model, cache) | prefill_s(model, cache, theirs)
        more, line = _lines(threads, found)
        steps += more
        prefill.append(line)
        print("\n".join([*more, line]), flush=True)
    save(began, "\n".join([*steps, "", *prefill]), figures)


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
