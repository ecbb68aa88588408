"""What the output head costs in perplexity when it is quantised, on fixed texts, Chinese and English.

    python -m bench.perplexity

The body is the packaged model's in NF4, run by transformers in float32. Each row is perplexity with the head in fewer
bits over perplexity with the head as the source has it: 1.02 is 2 % worse.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bench.texts import CHINESE, ENGLISH
from engine.backends.qwen2 import weights
from engine.backends.qwen2.linear import BLOCK, bitsandbytes
from engine.backends.qwen2.quantize import ready_folder
from engine.backends.qwen2.tokens import Tokens
from engine.settings import Settings
from tests.engine.backends.qwen2.reference import in_transformers

CPU = torch.device("cpu")


def nf4(head: Tensor) -> Tensor:
    library = bitsandbytes().functional
    packed, state = library.quantize_4bit(head, blocksize=BLOCK, compress_statistics=True, quant_type="nf4")
    unpacked: Tensor = library.dequantize_4bit(packed, state)
    return unpacked


def int8(head: Tensor) -> Tensor:
    """One scale a row."""
    scale = head.float().abs().amax(1, keepdim=True) / 127
    return (head.float() / scale).round() * scale


@torch.inference_mode()
def main() -> None:
    settings = Settings(model="packaged")
    source = weights.resolve(settings, lambda _: None)
    folder = ready_folder(source, "nf4", settings.models_dir, CPU, lambda _: None)
    model = in_transformers(folder)
    plain = model.lm_head.weight.detach()
    for name, text in (("English", ENGLISH), ("Chinese", CHINESE)):
        ids = torch.tensor(Tokens(folder).encode(text))
        hidden = model.model(ids[None]).last_hidden_state[0, :-1]
        base = _perplexity(hidden, plain, ids)
        for quantized in (nf4, int8):
            ratio = _perplexity(hidden, _quantized(quantized, plain), ids) / base
            print(f"{name}, {len(ids)} tokens, head in {quantized.__name__}: {ratio:.4f}")


def _quantized(how: Callable[[Tensor], Tensor], head: Tensor) -> Tensor:
    return how(head.bfloat16()).float()


def _perplexity(hidden: Tensor, head: Tensor, ids: Tensor) -> float:
    return math.exp(cross_entropy(hidden @ head.T, ids[1:]).item())


if __name__ == "__main__":
    main()
