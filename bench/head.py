"""Output heads and 4-bit linears of a CPU with AVX512-BF16: how long each takes, and how far each head is off.

    GOMP_SPINCOUNT=2000 python -m bench.head       with OpenMP's threads as the server has them

Of the packaged model. The rows that the heads see are those after every token of the fixed texts (bench/texts.py), so
that what they choose and how far down its exact best is are those of real text. `exact` is float32 on bfloat16 weights.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from bench.linears import CPU, load_model, packaged_ready
from bench.report import save
from bench.texts import CHINESE, ENGLISH
from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.avx512 import Int8Head, Packed
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.linear import Linear, bitsandbytes, has_kernel, load_linear, quantize
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.ready import WEIGHTS
from engine.backends.qwen2.tokens import Tokens

ROUNDS, COUNTS = 9, (1, 8, 16)
INNER = 4864  # of the packaged model's feed-forward


def hidden_rows(model: Qwen2) -> Tensor:
    """What the head is given after each token of the texts, [tokens, hidden]."""
    tokens, seen = Tokens(packaged_ready()), list[Tensor]()

    def keep(x: Tensor) -> Tensor:
        seen.append(x)
        return x

    model.head, head = keep, model.head
    for text in (ENGLISH, CHINESE):
        ids = tokens.encode(text)
        piece, cache = (
            Piece(0, 0, ids, logits=len(ids), is_prompt=True),
            KVCache(model.shape, 1, len(ids), CPU, model.dtype),
        )
        model.step([piece], cache)
    model.head = head
    return torch.cat(seen)


def heads(weight: Tensor) -> dict[str, Linear]:
    nf4 = {f"weight{part}": value for part, value in quantize(weight).items()}
    int8 = Int8Head(weight)
    return {
        "bfloat16": partial(functional.linear, weight=weight),
        "nf4": load_linear(nf4, CPU, unpack=False),
        "int8": int8.rough,
        "int8, the best exact": int8,
    }


def how_far_off(head: Linear, rows: Tensor, weight: Tensor) -> list[float]:
    """Mean error, share of rows that choose as bfloat16 does, and how far down the exact best is at most."""
    errors, same, deepest = [], 0, 0
    for some in rows.split(100):
        ours, plain = head(some).float(), functional.linear(some, weight).float()
        exact = some.float() @ weight.float().T
        errors.append(float((ours - exact).abs().mean()))
        same += int((ours.argmax(-1) == plain.argmax(-1)).sum())
        best = ours.gather(1, exact.argmax(-1, keepdim=True))
        deepest = max(deepest, int((ours > best).sum(-1).max()))
    return [statistics.mean(errors), same / len(rows), deepest]


def median_ms(work: Callable[[], object]) -> float:
    work()
    seconds = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return 1e3 * statistics.median(seconds)


def four_bit_layers(model: Qwen2) -> list[Any]:
    """As many layers of bitsandbytes as the model has, of its shapes, with random weights."""
    library, size = bitsandbytes().nn, model.shape.hidden
    attention = (model.shape.heads + 2 * model.shape.kv_heads) * model.shape.head_size
    layers = []
    for out, into in [(attention, size), (size, size), (2 * INNER, size), (size, INNER)] * model.shape.layers:
        layer = library.Linear4bit(into, out, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4", device="meta")
        weight = torch.randn(out, into, dtype=torch.bfloat16)
        layer.weight = library.Params4bit(weight, requires_grad=False, quant_type="nf4").to(CPU)
        layers.append(layer.eval())
    return layers


def all_of(layers: Sequence[Any], linears: Sequence[Linear], count: int) -> None:
    for layer, linear in zip(layers, linears, strict=True):
        linear(torch.zeros(count, layer.in_features, dtype=torch.bfloat16))


@torch.inference_mode()
def main() -> None:
    began = datetime.now(UTC)
    if not has_kernel(CPU):
        sys.exit("This CPU has no AVX512-BF16.")
    model = load_model()
    weight = load_file(packaged_ready() / WEIGHTS).get("head.weight", model.embedding)
    rows = hidden_rows(model)
    lines = [
        f"| head | {' | '.join(f'{n} rows, ms' for n in COUNTS)} | mean error | chooses alike | exact best, at most |"
    ]
    lines.append("|---|" + "---|" * (len(COUNTS) + 3))
    figures: dict[str, list[float]] = {}
    for name, head in heads(weight).items():
        times = [median_ms(partial(head, rows[:n])) for n in COUNTS]
        error, alike, deepest = how_far_off(head, rows, weight)
        figures[name] = [*times, error, alike, deepest]
        shown = " | ".join(f"{ms:.1f}" for ms in times)
        lines.append(f"| {name} | {shown} | {error:.3f} | {alike:.2%} of {len(rows)} | {deepest + 1:.0f}. |")
    layers = four_bit_layers(model)
    alone = [Packed(bitsandbytes(), layer) for layer in layers]
    lines += ["", f"| all linears but the head | {' | '.join(f'{n} rows, ms' for n in COUNTS)} |"]
    lines.append("|---|" + "---|" * len(COUNTS))
    for name, linears in {"bitsandbytes' layers": layers, "its kernel alone": alone}.items():
        figures[name] = [median_ms(partial(all_of, layers, linears, n)) for n in COUNTS]
        lines.append(f"| {name} | {' | '.join(f'{ms:.1f}' for ms in figures[name])} |")
    save(began, "\n".join(lines), figures)


if __name__ == "__main__":
    main()
