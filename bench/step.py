"""Where the time of a step goes: the linears alone beside the whole step, by number of sequences; and prefill.

python -m bench.step
"""

import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime

import torch

from bench.linears import CPU, load_model, step_s
from bench.report import save
from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache

ROUNDS, CONTEXT, PIECE = 7, 200, 256


def _median_s(work: Callable[[], object]) -> float:
    work()
    return statistics.median(_timed(work) for _ in range(ROUNDS))


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    began, model = datetime.now(UTC), load_model()
    cache = KVCache(model.shape, 16, 1024, CPU, model.dtype)
    figures: dict[str, list[float]] = {}
    lines = ["| sequences | linears alone, ms | whole step, ms | share | tokens/s |", "|---|---|---|---|---|"]
    for count in (1, 8, 16):
        pieces = [Piece(slot, CONTEXT, [5], logits=1) for slot in range(count)]
        step_s(model, count)
        alone = statistics.median(step_s(model, count) for _ in range(ROUNDS))
        whole = _median_s(lambda pieces=pieces: model.step(pieces, cache))  # type: ignore[misc]  # bound at once
        figures[f"{count} sequences"] = [alone, whole]
        lines.append(f"| {count} | {alone * 1e3:.0f} | {whole * 1e3:.0f} | {alone / whole:.0%} | {count / whole:.1f} |")
    prompt = [Piece(0, 0, [5] * PIECE, logits=1)]
    prefill = _median_s(lambda: model.step(prompt, cache)) / PIECE
    figures["prefill of a token"] = [prefill]
    save(began, "\n".join([*lines, f"\nPrefill in pieces of {PIECE}: {prefill * 1e3:.1f} ms a token."]), figures)


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
