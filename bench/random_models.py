"""Random weights in the shapes of real models, made on the device itself: speed and memory need no knowledge.

Each is made once as transformers has it, from which ours takes its 4-bit weights; then transformers' own linears are
brought to 4 bits too. Nothing is downloaded.
"""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import Qwen2Config, Qwen2ForCausalLM

from engine.backends.qwen2.linear import bitsandbytes, has_kernel
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.quantize import shape_of, tensors_of


@dataclass(frozen=True, slots=True)
class Size:
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    vocabulary: int
    tied: bool


SIZES = {
    "qwen2-7b": Size(3584, 18944, 28, 28, 4, 152_064, tied=False),
    "packaged": Size(896, 4864, 24, 14, 2, 151_936, tied=True),
    "tiny": Size(128, 256, 2, 4, 2, 1024, tied=False),
}


def random_model(size: Size, device: torch.device, context: int) -> Qwen2ForCausalLM:
    """bfloat16 weights as transformers initialises them."""
    config = Qwen2Config(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        intermediate_size=size.intermediate,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads,
        max_position_embeddings=context,
        tie_word_embeddings=size.tied,
        bos_token_id=None,
        eos_token_id=0,
        pad_token_id=0,
        dtype=torch.bfloat16,
    )
    torch.manual_seed(0)
    with torch.device(device):
        model = Qwen2ForCausalLM(config)
    model.bfloat16().eval()
    return model


def ours(model: Qwen2ForCausalLM, device: torch.device) -> Qwen2:
    """The same weights in 4 bits, in our forward pass."""
    shape = shape_of(model.config, None)
    tensors = tensors_of(model, shape, "nf4", device, lambda _: None)
    return Qwen2(shape, tensors, device, unpack=not has_kernel(device))


def quantize_in_place(model: Qwen2ForCausalLM, device: torch.device) -> None:
    """Bring the linears of its layers to the same 4 bits, as transformers does when it loads with bitsandbytes."""
    library = bitsandbytes().nn
    for module in list(model.model.layers.modules()):
        for name, linear in list(module.named_children()):
            if isinstance(linear, nn.Linear):
                packed = library.Linear4bit(
                    linear.in_features,
                    linear.out_features,
                    bias=linear.bias is not None,
                    compute_dtype=torch.bfloat16,
                    compress_statistics=True,
                    quant_type="nf4",
                    device="meta",
                )
                packed.weight = library.Params4bit(
                    linear.weight.data, requires_grad=False, compress_statistics=True, quant_type="nf4"
                ).to(device)
                packed.bias = linear.bias
                setattr(module, name, packed)
