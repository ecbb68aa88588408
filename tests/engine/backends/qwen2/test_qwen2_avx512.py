"""4-bit linears and the int8 head give what the plain ways give; the second where it matters, and nearly elsewhere."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from engine.backends.qwen2.avx512 import EXACT, Int8, Int8Head
from engine.backends.qwen2.linear import bitsandbytes, has_kernel, load_int8, load_linear, quantize
from tests.engine.backends.qwen2.conftest import CPU

VOCABULARY, HIDDEN, ROWS = 3000, 256, 8


@pytest.fixture
def weight() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(VOCABULARY, HIDDEN).mul_(torch.rand(VOCABULARY, 1) + 0.1).bfloat16()


@pytest.fixture
def x() -> Tensor:
    """Some of the numbers are far larger than the others, as a transformer's are."""
    torch.manual_seed(1)
    return torch.randn(ROWS, HIDDEN).mul_(torch.rand(HIDDEN) ** -1).bfloat16()


@pytest.mark.skipif(not has_kernel(CPU), reason="this CPU has no AVX512-BF16, and bitsandbytes no kernel for it")
@pytest.mark.parametrize("rows", [1, 8, 40])
def test_packed_weights_give_what_the_librarys_own_layer_gives(weight: Tensor, x: Tensor, rows: int) -> None:
    tensors = {f"weight{part}": value for part, value in quantize(weight[:320]).items()}
    bias = torch.arange(320).bfloat16()
    ours = load_linear(tensors | {"bias": bias}, CPU, unpack=False)
    library = bitsandbytes()
    theirs = library.nn.Linear4bit(HIDDEN, 320, quant_type="nf4", compute_dtype=torch.bfloat16)
    theirs.load_state_dict({"weight": weight[:320], "bias": bias})
    theirs.weight = library.nn.Params4bit(weight[:320], requires_grad=False, quant_type="nf4").to(CPU)
    asked = x.repeat(5, 1)[:rows]
    with torch.inference_mode():
        assert torch.equal(ours(asked), theirs.eval()(asked))


def test_the_best_of_the_int8_head_are_those_of_the_weights_as_they_are(weight: Tensor, x: Tensor) -> None:
    ours, plain = Int8Head(weight)(x), functional.linear(x, weight).float()
    assert torch.equal(ours.argmax(-1), plain.argmax(-1))
    best = plain.topk(EXACT // 4).indices  # the others of them may be missed: they lie close to what follows
    off = (ours - plain).abs()
    assert (off.gather(1, best) <= 2**-7 * plain.gather(1, best).abs()).all()  # a step of bfloat16
    assert off.mean() < 0.05 * plain.std()
    assert off.max() > 0  # or nothing was rounded, and this test says nothing


def test_a_row_of_the_int8_head_is_the_same_in_whatever_company(weight: Tensor, x: Tensor) -> None:
    head = Int8Head(weight)
    together = head(x)
    assert all(torch.equal(head(row[None])[0], logits) for row, logits in zip(x, together, strict=True))


def test_what_is_no_number_stays_none(weight: Tensor, x: Tensor) -> None:
    """The sampler has to see it, so that this request fails and no other."""
    x[3, 5] = torch.nan
    logits = Int8Head(weight)(x)
    assert logits.isfinite().all(-1).tolist() == [row != 3 for row in range(ROWS)]


def test_a_row_of_zeros_gives_zeros(weight: Tensor) -> None:
    assert not Int8Head(weight)(torch.zeros(1, HIDDEN, dtype=torch.bfloat16)).any()


@pytest.mark.skipif(not has_kernel(CPU), reason="this CPU has no AVX512-BF16, and bitsandbytes no kernel for it")
def test_in_int8_packed_weights_give_nearly_the_same(weight: Tensor, x: Tensor) -> None:
    tensors = {f"weight{part}": value for part, value in quantize(weight[:320]).items()}
    ours, plain = load_int8(tensors)(x), load_linear(tensors, CPU, unpack=False)(x)
    assert ours.dtype == plain.dtype
    assert 0 < (ours - plain).float().abs().mean() < 0.02 * plain.float().std()


def test_a_row_in_int8_is_the_same_in_whatever_company(weight: Tensor, x: Tensor) -> None:
    int8 = Int8(weight, torch.bfloat16)
    assert all(torch.equal(int8(row[None])[0], of) for row, of in zip(x, int8(x), strict=True))


def test_the_largest_number_of_a_row_fits_into_int8() -> None:
    """Its scale is rounded to bfloat16, as the row is."""
    numbers = torch.arange(1, 2**12).bfloat16()[:, None].expand(-1, 64)
    products = Int8(torch.eye(64).bfloat16(), torch.float32)(torch.cat([numbers, -numbers]).contiguous())
    assert torch.allclose(products, torch.cat([numbers, -numbers]).float(), rtol=1 / 127)
