"""Perplexity on fixed texts, Chinese and English: ours over transformers' own run, and what a smaller head would cost.

    python -m bench.perplexity

The first rows are the engine as it serves over transformers with bitsandbytes, both of the packaged model in NF4. In
the others the body is run by transformers in float32, and each is perplexity with the head in fewer bits over
perplexity with the head as the source has it. 1.02 is 2 % worse.
"""

import math
from collections.abc import Callable
from datetime import UTC, datetime

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from bench.linears import CPU, load_model, packaged_ready
from bench.report import save
from bench.texts import CHINESE, ENGLISH
from bench.weights import transformers_nf4
from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.linear import BLOCK, bitsandbytes
from engine.backends.qwen2.tokens import Tokens
from tests.engine.backends.qwen2.reference import in_transformers

WANTED = 1.02


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
    began = datetime.now(UTC)
    ours, theirs = load_model(), transformers_nf4()
    folder = packaged_ready()
    model = in_transformers(folder)
    plain = model.lm_head.weight.detach()
    rows = []  # text, tokens, what is measured, perplexity, and that of what it is compared with
    for name, text in (("English", ENGLISH), ("Chinese", CHINESE)):
        ids = torch.tensor(Tokens(folder).encode(text))
        cache = KVCache(ours.shape, 1, len(ids), CPU, ours.dtype)
        found = _of_logits(ours.step([Piece(0, 0, ids.tolist(), logits=len(ids), is_prompt=True)], cache), ids)
        reference = _of_logits(theirs(ids[None]).logits[0], ids)
        rows.append((name, len(ids), "Qdesk over transformers", found, reference))
        hidden = model.model(ids[None]).last_hidden_state[0, :-1]
        base = _perplexity(hidden, plain, ids)
        for quantized in (nf4, int8):
            what = f"head in {quantized.__name__} over bfloat16"
            rows.append((name, len(ids), what, _perplexity(hidden, _quantized(quantized, plain), ids), base))
    lines = [
        f"| {name}, {length} tokens | {what} | {one:.2f} | {other:.2f} | {one / other:.4f} |"
        for name, length, what, one, other in rows
    ]
    head = f"| text | what | perplexity | over | ratio; wanted at most {WANTED} of the first |\n|---|---|---|---|---|"
    save(began, "\n".join([head, *lines]), {"rows": rows})


def _quantized(how: Callable[[Tensor], Tensor], head: Tensor) -> Tensor:
    return how(head.bfloat16()).float()


def _perplexity(hidden: Tensor, head: Tensor, ids: Tensor) -> float:
    return math.exp(cross_entropy(hidden @ head.T, ids[1:]).item())


def _of_logits(logits: Tensor, ids: Tensor) -> float:
    """`logits` has a row after each token; what follows the last one is not known."""
    return math.exp(cross_entropy(logits[:-1].float(), ids[1:]).item())


if __name__ == "__main__":
    main()
