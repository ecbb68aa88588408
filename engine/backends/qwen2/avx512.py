"""The linears of CPUs with AVX512-BF16: 4-bit weights as they are packed, and int8 where that is faster.

Knows two kernels of such CPUs: bitsandbytes' for 4-bit weights, and oneDNN's for whole numbers (AVX512-VNNI, which they
all have). Knows nothing of files and of a model's shape.
"""

from ctypes import c_int64, c_void_p
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

EXACT = 64  # of a row's best logits, that are computed anew from the weights as they are
PIECE = 4096  # rows that are rounded at once: more than that and the processor's caches are too small for it
STEPS = 126  # of int8 from its middle to each end; with 127 a scale rounded to bfloat16 could take a number past it
MIDDLE = 128  # of uint8, which oneDNN wants for input


class Packed:
    """A linear on NormalFloat weights, [rows, in] -> [rows, out] in bfloat16, by bitsandbytes' kernel alone.

    What the library does around each call takes longer than the product of one row (docs/performance.md).
    """

    def __init__(self, library: ModuleType, layer: Any) -> None:
        """`layer` is a Linear4bit on the CPU, whose weights are taken."""
        layer(torch.zeros(1, layer.in_features, dtype=torch.bfloat16))  # which puts them into the kernel's order
        state = layer.weight.quant_state
        self._weight, self._scales, self._bias = layer.weight.data, state.absmax, layer.bias
        self._multiply = library.cextension.lib.gemv_4bit_inference_cpu_nf4_bf16
        self._out_features = layer.out_features
        self._shape = c_int64(layer.out_features), c_int64(layer.in_features)
        self._weights = c_void_p(self._weight.data_ptr()), c_void_p(self._scales.data_ptr())
        self._block = c_int64(state.blocksize)

    def __call__(self, x: Tensor) -> Tensor:
        rows = len(x)
        assert rows  # by which the kernel divides
        assert x.stride(1) == 1  # which it takes for granted
        out = torch.empty(rows, self._out_features, dtype=torch.bfloat16)
        source, target = c_void_p(x.data_ptr()), c_void_p(out.data_ptr())
        strides = c_int64(x.stride(0)), self._shape[0]
        self._multiply(c_int64(rows), *self._shape, source, *self._weights, target, self._block, *strides)
        return out if self._bias is None else out.add_(self._bias)


class Int8:
    """A linear without bias on weights rounded to int8: half as much to read as bfloat16, multiplied at twice its pace.

    [rows, in] in bfloat16 -> [rows, out] in `dtype`. Each row of either has a scale of its own, so that what comes of a
    row is the same in whatever company.
    """

    def __init__(self, weight: Tensor, dtype: torch.dtype) -> None:
        self._dtype = dtype
        self._scales = torch.empty(len(weight))
        rounded = torch.empty(weight.shape, dtype=torch.int8)
        for rows, scales, into in zip(*(every.split(PIECE) for every in (weight, self._scales, rounded)), strict=True):
            scale = _scales(rows)
            scales.copy_(scale[:, 0])
            into.copy_((rows.float() / scale).round_())
        self._packed = torch.ops.onednn.qlinear_prepack(rounded, None)
        self._zeros = torch.zeros(len(weight), dtype=torch.long)

    def __call__(self, x: Tensor) -> Tensor:
        scale = _scales(x).to(x.dtype)
        rounded = (x / scale).round_().add_(MIDDLE).to(torch.uint8)
        weights = self._packed, self._scales, self._zeros
        product: Tensor = torch.ops.onednn.qlinear_pointwise(
            rounded, 1.0, MIDDLE, *weights, None, 1.0, 0, self._dtype, "none", [], ""
        )
        return product.mul_(scale.to(self._dtype))


class Int8Head:
    """All logits from int8 weights, which are half as much to read; then each row's best from the weights as they are.

    [rows, hidden] in bfloat16 -> [rows, vocabulary] in float32.
    """

    def __init__(self, weight: Tensor) -> None:
        self._weight, self.rough = weight, Int8(weight, torch.float32)

    def __call__(self, x: Tensor) -> Tensor:
        logits = self.rough(x)
        best = logits.topk(min(EXACT, logits.shape[1]), sorted=False).indices
        exact = torch.bmm(self._weight[best], x[:, :, None])[:, :, 0]
        return logits.scatter_(1, best, exact.float())


def _scales(rows: Tensor) -> Tensor:
    """Of int8 for each row, [rows, 1]; none is 0."""
    return rows.abs().amax(-1, keepdim=True).float().div_(STEPS).clamp_min_(torch.finfo().tiny)
