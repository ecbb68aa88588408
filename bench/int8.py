"""Which linears prompts may be read with in int8: what it does to perplexity, and from how many rows on it is faster.

    GOMP_SPINCOUNT=2000 python -m bench.int8       with OpenMP's threads as the server has them

Of the packaged model on a CPU with AVX512-BF16, reading texts in pieces of PIECE tokens. `off` is the mean difference
of all logits from those of the packed weights, as a share of their spread; bfloat16 weights through PyTorch's own
product stand beside them for what is noise.
"""

import dataclasses
import math
import sys
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import cross_entropy

from bench.head import median_ms
from bench.linears import CPU, packaged_ready
from bench.report import save
from bench.texts import CHINESE, ENGLISH
from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.avx512 import Int8
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.linear import Dense, Linear, dequantized, has_kernel
from engine.backends.qwen2.model import FeedForward, Layer, Qwen2
from engine.backends.qwen2.ready import WEIGHTS
from engine.backends.qwen2.tokens import Tokens
from engine.hardware import physical_cores

KINDS = ("qkv", "o", "gate_up", "down")
CHOICES = (*((kind,) for kind in KINDS), ("gate_up", "down"), KINDS)
COUNTS = (8, 16, 24, 32, 64, 256)
LONGEST, PIECE = 3000, 256  # tokens
DOCUMENTS = Path(__file__).parent.parent / "docs"

Figures = dict[str, dict[str, list[float]]]  # two numbers by row and column of a table
Weights = dict[str, list[tuple[Tensor, Tensor | None]]]  # of each kind, each layer's weight and bias


class Rounded:
    """Int8 with a bias, which no linear that the engine has in int8 has."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self._int8, self._bias = Int8(weight, torch.bfloat16), bias

    def __call__(self, x: Tensor) -> Tensor:
        product = self._int8(x)
        return product if self._bias is None else product.add_(self._bias)


def weights(layers: int) -> Weights:
    """As they come from 4 bits, in bfloat16."""
    tensors = load_file(packaged_ready() / WEIGHTS)

    def of(name: str) -> tuple[Tensor, Tensor | None]:
        parts = {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
        return dequantized(parts, CPU), parts.get("bias")

    return {kind: [of(f"layers.{i}.{kind}") for i in range(layers)] for kind in KINDS}


def texts() -> dict[str, Tensor]:
    tokens = Tokens(packaged_ready())
    documents = "\n".join(path.read_text() for path in sorted(DOCUMENTS.glob("*.md")))
    found = {"English": ENGLISH, "Chinese": CHINESE, "docs/*.md": documents}
    return {name: torch.tensor(tokens.encode(text)[:LONGEST]) for name, text in found.items()}


def logits_of(model: Qwen2, ids: Tensor) -> Tensor:
    cache = KVCache(model.shape, 1, len(ids), CPU, model.dtype)
    starts = range(0, len(ids), PIECE)
    pieces = [Piece(0, at, some.tolist(), logits=len(some)) for at, some in zip(starts, ids.split(PIECE), strict=True)]
    return torch.cat([model.step([piece], cache).float() for piece in pieces])


def perplexity(logits: Tensor, ids: Tensor) -> float:
    return math.exp(cross_entropy(logits[:-1], ids[1:]).item())


def in_place_of(layers: list[Layer], made: dict[str, list[Linear]]) -> list[Layer]:
    def of(layer: Layer, i: int) -> Layer:
        qkv, o, gate_up, down = (made[kind][i] if kind in made else linear(layer, kind) for kind in KINDS)
        feed = FeedForward(gate_up, down)
        return dataclasses.replace(layer, qkv=qkv, o=o, answers=feed, prompts=feed)

    return [of(layer, i) for i, layer in enumerate(layers)]


def linear(layer: Layer, kind: str) -> Linear:
    found: Linear = getattr(layer if kind in ("qkv", "o") else layer.answers, kind)
    return found


def quality(model: Qwen2, whole: Weights, rounded: dict[str, list[Linear]]) -> Figures:
    """By what is in int8 and by text: perplexity over that of packed weights, and how far the logits are off."""
    packed, read = model.layers, texts()
    plain = {name: logits_of(model, ids) for name, ids in read.items()}

    def compared(layers: list[Layer]) -> dict[str, list[float]]:
        model.layers, found = layers, {}
        for name, ids in read.items():
            ours, theirs = logits_of(model, ids), plain[name]
            off = float((ours - theirs).abs().mean() / theirs.std())
            found[name] = [perplexity(ours, ids) / perplexity(theirs, ids), off]
        model.layers = packed
        return found

    dense: dict[str, list[Linear]] = {kind: [Dense(*one) for one in found] for kind, found in whole.items()}
    figures = {"none, all in bfloat16": compared(in_place_of(packed, dense))}
    for chosen in CHOICES:
        figures[", ".join(chosen)] = compared(in_place_of(packed, {kind: rounded[kind] for kind in chosen}))
    return figures


def pace(model: Qwen2, whole: Weights, rounded: dict[str, list[Linear]]) -> Figures:
    """Milliseconds of all layers' linears of a kind, by the number of rows: packed and in int8."""
    figures: Figures = {}
    for kind in KINDS:
        packed = [linear(layer, kind) for layer in model.layers]
        figures[kind] = {}
        for count in COUNTS:
            x = torch.randn(count, whole[kind][0][0].shape[1]).bfloat16()
            both = [median_ms(partial(_all, linears, x)) for linears in (packed, rounded[kind])]
            figures[kind][f"{count} rows"] = both
    return figures


def table(first: str, figures: Figures, cell: str) -> list[str]:
    columns = list(next(iter(figures.values())))
    rows = [f"| {name} | {' | '.join(cell.format(*pair) for pair in of.values())} |" for name, of in figures.items()]
    return [f"| {first} | {' | '.join(columns)} |", "|---|" + "---|" * len(columns), *rows]


def _all(linears: list[Linear], x: Tensor) -> None:
    for linear in linears:
        linear(x)


@torch.inference_mode()
def main() -> None:
    began = datetime.now(UTC)
    if not has_kernel(CPU):
        sys.exit("This CPU has no AVX512-BF16.")
    torch.set_num_threads(physical_cores())
    model = Qwen2.read(packaged_ready(), CPU, unpack=False)
    whole = weights(model.shape.layers)
    rounded: dict[str, list[Linear]] = {kind: [Rounded(*one) for one in found] for kind, found in whole.items()}
    off, ms = quality(model, whole, rounded), pace(model, whole, rounded)
    lines = [
        *table("in int8: perplexity over packed weights', logits off", off, "{:.4f}, {:.1%}"),
        "",
        *table("packed and int8, ms", ms, "{:.0f} and {:.0f}"),
    ]
    save(began, "\n".join(lines), {"quality": off, "ms": ms})


if __name__ == "__main__":
    torch.manual_seed(0)
    main()
