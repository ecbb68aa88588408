"""The forward pass of Qwen2 and Qwen2.5 (arxiv.org/abs/2407.10671, section 2.2.1) over one flat batch of tokens.

All linears see one batch: decodes and pieces of prompts together; attention is the batch's own (attention.py). Knows
weights and tensors; nothing of requests, policies or text.
"""

import mmap
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from engine.backends.qwen2.attention import Batch, Piece, Pieces
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.linear import Linear, load_head, load_int8, load_linear
from engine.backends.qwen2.ready import WEIGHTS, Shape

LINEAR = re.compile(r"(?P<name>.+)\.(?P<part>weight.*|bias)")  # a tensor's name


@dataclass(frozen=True, slots=True)
class FeedForward:
    """SwiGLU (arxiv.org/abs/2002.05202), [rows, hidden] -> [rows, hidden]."""

    gate_up: Linear
    down: Linear

    def __call__(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(x).chunk(2, -1)
        return self.down(functional.silu(gate, inplace=True).mul_(up))


@dataclass(frozen=True, slots=True)
class Layer:
    norm1: Tensor
    qkv: Linear
    o: Linear
    norm2: Tensor
    answers: FeedForward
    prompts: FeedForward  # the same one, unless they are read in int8

    def feed_forward(self, x: Tensor, answers: int) -> Tensor:
        """Of `x` that many rows are answers', and come first."""
        if self.prompts is self.answers:
            return self.answers(x)
        parts = (self.answers, x[:answers]), (self.prompts, x[answers:])
        return torch.cat([feed(rows) for feed, rows in parts if len(rows)])


class Qwen2:
    def __init__(
        self, shape: Shape, tensors: Mapping[str, Tensor], device: torch.device, *, unpack: bool, int8: bool = False
    ) -> None:
        """Bring a ready folder's tensors to `device`.

        With `int8` prompts are read with the feed-forward's packed linears in int8, which are kept beside the others.
        """
        self.shape = shape
        self.device, self.dtype = device, torch.float32 if unpack else torch.bfloat16
        self.weights_bytes = sum(tensor.nbytes for tensor in tensors.values())  # as they are stored, not unpacked

        linears: defaultdict[str, dict[str, Tensor]] = defaultdict(dict)
        self.embedding = _read_whole(tensors["embedding"]).to(device)
        own_head = tensors.get("head.weight", self.embedding)
        for key, tensor in tensors.items():
            if found := LINEAR.match(key):
                linears[found["name"]][found["part"]] = tensor

        packed = len(linears["layers.0.o"]) > 1

        def linear(name: str) -> Linear:
            return load_linear(linears[name], device, unpack=unpack)

        def norm(name: str) -> Tensor:
            return tensors[name].to(device, self.dtype)

        def layer(i: int) -> Layer:
            gate_up, down = f"layers.{i}.gate_up", f"layers.{i}.down"
            answers = prompts = FeedForward(linear(gate_up), linear(down))
            if int8 and packed:
                prompts = FeedForward(load_int8(linears[gate_up]), load_int8(linears[down]))
            return Layer(
                norm(f"layers.{i}.norm1"),
                linear(f"layers.{i}.qkv"),
                linear(f"layers.{i}.o"),
                norm(f"layers.{i}.norm2"),
                answers,
                prompts,
            )

        self.norm = norm("norm")
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:  # where weights are unpacked, one thread takes long
            head = pool.submit(load_head, own_head, device, unpack=unpack, rough=packed)
            self.layers = list(pool.map(layer, range(shape.layers)))
            self.head = head.result()
        self.cos, self.sin = rope_tables(shape, device, self.dtype)

    @classmethod
    def read(cls, folder: Path, device: torch.device, *, unpack: bool, int8: bool = False) -> Self:
        """Map the ready folder's weights."""
        return cls(Shape.read(folder), load_file(folder / WEIGHTS), device, unpack=unpack, int8=int8)

    def step(self, pieces: Sequence[Piece], cache: KVCache) -> Tensor:
        """Run all pieces, write their keys and values to the cache, and return the logits that are wanted.

        They are [logits that are wanted, vocabulary] in the order of the pieces; empty if none are.
        """
        groups = self.shape.heads // self.shape.kv_heads
        return self.forward(Pieces(pieces, groups, self.device, self.dtype), cache)

    @torch.inference_mode()
    def forward(self, batch: Batch, cache: KVCache) -> Tensor:
        """As `step`, for a batch that is on the device already."""
        cos, sin = self.cos[batch.positions, None], self.sin[batch.positions, None]
        x = self.embedding[batch.ids].to(self.dtype)
        for layer, keys, values in zip(self.layers, cache.keys, cache.values, strict=True):
            seen = self._attention(layer.qkv(self._norm(x, layer.norm1)), cos, sin, keys, values, batch)
            x = x + layer.o(seen)
            x = x + layer.feed_forward(self._norm(x, layer.norm2), batch.answers)
        wanted = self._norm(x[batch.wanted], self.norm)
        return self.head(wanted) if len(wanted) else wanted

    def _norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return functional.rms_norm(x, weight.shape, weight, self.shape.norm_epsilon)

    def _attention(self, mixed: Tensor, cos: Tensor, sin: Tensor, keys: Tensor, values: Tensor, batch: Batch) -> Tensor:
        """Rotate, store keys and values, and attend. `mixed` is [tokens, (heads + 2 kv heads) * head size]."""
        heads, kv_heads, size = self.shape.heads, self.shape.kv_heads, self.shape.head_size
        mixed = mixed.view(len(mixed), heads + 2 * kv_heads, size)
        rotated = mixed[:, : heads + kv_heads]
        rotated = torch.addcmul(rotated * cos, rotated.roll(size // 2, -1), sin)
        keys[batch.slots, :, batch.positions] = rotated[:, heads:]
        values[batch.slots, :, batch.positions] = mixed[:, heads + kv_heads :]
        query = rotated[:, :heads].view(-1, kv_heads, heads // kv_heads, size)
        return batch.attend(query, keys, values).flatten(1)


def _read_whole(mapped: Tensor) -> Tensor:
    """Read a number of every page: else the disk is waited for, and memory grows, whenever a new word comes up."""
    mapped.flatten()[:: mmap.PAGESIZE // mapped.itemsize].sum()
    return mapped


def rope_tables(shape: Shape, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosines and signed sines of rotary positions (arxiv.org/abs/2104.09864), [positions, head size]."""
    powers = torch.arange(0, shape.head_size, 2).float() / shape.head_size
    angles = torch.outer(torch.arange(shape.context_tokens).float(), shape.rope_theta**-powers)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([cos, cos], -1).to(device, dtype), torch.cat([-sin, sin], -1).to(device, dtype)
