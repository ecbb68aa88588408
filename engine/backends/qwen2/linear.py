"""The model's linears: 4-bit NormalFloat weights with double quantisation, or plain weights.

Knows how one weight is quantised, named in a file, and multiplied on which hardware. Knows nothing of a model's shape.

bitsandbytes multiplies packed weights on CUDA and on CPUs with AVX512-BF16. Any other CPU would unpack each weight
anew for every token (measured: a step of the 0.5B model takes ten times as long), so there each weight is unpacked
once where the memory allows it. Such a CPU has no bfloat16 arithmetic either, so everything is computed in float32, and
the weights lie in memory as float16 in FBGEMM's order: as exact, and half as much to read (docs/performance.md).
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from engine.backends.qwen2.avx512 import Int8, Int8Head, Packed

Linear = Callable[[Tensor], Tensor]  # [rows, in] -> [rows, out], both float32 if unpacked, else bfloat16

BLOCK = 64  # weights that share one scale
ROWS = 32  # the packed CPU kernel takes the outputs in groups of this size
PIECE = 4096  # rows that are packed at once: more than that and the processor's caches are too small for it

_importing = threading.Lock()


def bitsandbytes() -> ModuleType:
    """Import the library without torch's compiler, which it would load only to leave it unused.

    That saves ten seconds of CPU time at a start, something at every call, and needs no compiler on the machine.
    bitsandbytes falls back on the plain function where `torch.compile` raises; `torch._disable_dynamo`, which wraps
    every kernel that it registers, has no meaning where nothing is compiled.
    """
    logging.getLogger("bitsandbytes.backends.cpu.ops").setLevel(logging.ERROR)  # warns of a kernel that is not needed
    with _importing, replaced(torch, compile=_refuse, _disable_dynamo=_leave_alone):
        import bitsandbytes as library
    module: ModuleType = library
    return module


@contextmanager
def replaced(module: ModuleType, **values: Any) -> Iterator[None]:
    """Let the module's attributes have other values for a while."""
    kept = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(kept)


def _refuse(*_: Any, **__: Any) -> Any:
    raise NotImplementedError("torch.compile is not used")


def _leave_alone(function: Any, *_: Any, **__: Any) -> Any:
    return function


def has_kernel(device: torch.device) -> bool:
    """Whether weights can be multiplied as they are packed, and bfloat16 numbers at full speed."""
    return device.type != "cpu" or bool(bitsandbytes().functional.has_avx512bf16())


def can_quantize(weight: Tensor) -> bool:
    return weight.shape[0] % ROWS == 0 and weight.shape[1] % BLOCK == 0


def quantize(weight: Tensor) -> dict[str, Tensor]:
    """Return the packed weight under "" and what is needed to read it under ".<part>", all on the CPU."""
    packed, state = bitsandbytes().functional.quantize_4bit(
        weight, blocksize=BLOCK, compress_statistics=True, quant_type="nf4"
    )
    parts = {"": packed} | {f".{part}": value for part, value in state.as_dict(packed=True).items()}
    return {part: value.cpu().contiguous() for part, value in parts.items()}


def load_linear(tensors: Mapping[str, Tensor], device: torch.device, *, unpack: bool) -> Linear:
    """Return the linear of `tensors`: "weight", perhaps "bias", and "weight.<part>" if it is quantised."""
    weight = tensors["weight"].to(device)
    bias = tensors["bias"].to(device) if "bias" in tensors else None
    if len(tensors) == (1 if bias is None else 2):
        return unpacked(weight, bias) if unpack else Dense(weight, bias)
    if unpack:
        return unpacked(dequantized(tensors, device), bias)
    return _packed(bitsandbytes(), weight, _quant_state(tensors, device), bias)


def load_int8(tensors: Mapping[str, Tensor]) -> Linear:
    """Return the linear of quantised weights without a bias in int8, on a CPU that has the kernel."""
    assert "bias" not in tensors
    return Int8(dequantized(tensors, torch.device("cpu")), torch.bfloat16)


def dequantized(tensors: Mapping[str, Tensor], device: torch.device) -> Tensor:
    """The weights that 4 bits stand for, in bfloat16."""
    weight = tensors["weight"].to(device)
    whole: Tensor = bitsandbytes().functional.dequantize_4bit(weight, _quant_state(tensors, device))
    return whole.to(torch.bfloat16)


def _quant_state(tensors: Mapping[str, Tensor], device: torch.device) -> Any:
    state = {part.removeprefix("weight."): tensor for part, tensor in tensors.items() if part.startswith("weight.")}
    return bitsandbytes().functional.QuantState.from_dict(state, device=device)


def unpacked(weight: Tensor, bias: Tensor | None) -> Linear:
    """A linear that computes in float32, whatever `weight` is stored as."""
    if "fbgemm" in torch.backends.quantized.supported_engines:
        return Half(weight, bias)
    return Dense(weight.float(), None if bias is None else bias.float())


def _packed(library: ModuleType, weight: Tensor, state: Any, bias: Tensor | None) -> Linear:
    out_features, in_features = state.shape
    linear = library.nn.Linear4bit(
        in_features, out_features, bias=False, compute_dtype=torch.bfloat16, quant_type="nf4", device="meta"
    )
    linear.weight = library.nn.Params4bit(
        weight, requires_grad=False, quant_state=state, blocksize=BLOCK, quant_type="nf4", bnb_quantized=True
    )
    linear.quant_state = state
    linear.bias = None if bias is None else torch.nn.Parameter(bias, requires_grad=False)
    evaluated: Linear = linear.eval()
    return Packed(library, evaluated) if weight.device.type == "cpu" and has_kernel(weight.device) else evaluated


def load_head(weight: Tensor, device: torch.device, *, unpack: bool, rough: bool) -> Linear:
    """Return the linear of the output head, whose weights are not quantised; in int8 as well if it may be rough."""
    if rough and not unpack and device.type == "cpu" and has_kernel(device):
        return Int8Head(weight)
    return load_linear({"weight": weight}, device, unpack=unpack)


_kept = threading.local()


def _in_float32(rows: Tensor) -> Tensor:
    """A copy that is this thread's until it asks for the next one: new memory costs more than the copying."""
    kept: Tensor | None = getattr(_kept, "copy", None)
    if kept is None or kept.numel() < rows.numel():
        kept = _kept.copy = torch.empty(rows.numel())
    return kept[: rows.numel()].view(rows.shape).copy_(rows)


class Dense:
    """A linear on weights as torch has them."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias

    def __call__(self, x: Tensor) -> Tensor:
        return functional.linear(x, self.weight, self.bias)


class Half:
    """A linear on float16 weights in FBGEMM's order (arxiv.org/abs/2101.05615), float32 in and out.

    Multiplied in float32. A bfloat16 weight of 2^-14 or more is the same number in float16; a smaller one moves by
    2^-25 at most.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        biases = [None] * len(weight) if bias is None else bias.float().split(PIECE)
        self._pieces = [
            torch.ops.quantized.linear_prepack_fp16(_in_float32(rows), offset)
            for rows, offset in zip(weight.split(PIECE), biases, strict=False)
        ]

    def __call__(self, x: Tensor) -> Tensor:
        if len(self._pieces) == 1:
            return multiply(x, self._pieces[0])
        return torch.cat([multiply(x, piece) for piece in self._pieces], -1)


multiply: Callable[[Tensor, Any], Tensor] = torch.ops.quantized.linear_dynamic_fp16
