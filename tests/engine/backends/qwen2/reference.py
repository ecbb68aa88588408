"""Transformers' Qwen2 around the weights of a ready folder, unpacked, in float32: what ours must come to."""

from pathlib import Path

import torch
import transformers  # whose classes are imported when they are asked for; that takes seconds
from safetensors.torch import load_file
from torch import Tensor

from engine.backends.qwen2.linear import bitsandbytes
from engine.backends.qwen2.ready import WEIGHTS, Shape

CPU = torch.device("cpu")


def in_transformers(folder: Path) -> "transformers.Qwen2ForCausalLM":
    shape, ours = Shape.read(folder), load_file(folder / WEIGHTS)
    config = _config(shape, _weight(ours, "layers.0.gate_up").shape[0] // 2)
    with torch.device("meta"):
        theirs = transformers.Qwen2ForCausalLM(config)
    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    state = {"model.embed_tokens.weight": ours["embedding"], "model.norm.weight": ours["norm"]}
    state["lm_head.weight"] = ours.get("head.weight", ours["embedding"])
    for i in range(shape.layers):
        name, here = f"model.layers.{i}.", f"layers.{i}."
        parts = _weight(ours, here + "qkv").split([queries, keys, keys])
        offsets = ours[here + "qkv.bias"].split([queries, keys, keys])
        for part, weight, offset in zip("qkv", parts, offsets, strict=True):
            state |= {f"{name}self_attn.{part}_proj.weight": weight, f"{name}self_attn.{part}_proj.bias": offset}
        state[name + "mlp.gate_proj.weight"], state[name + "mlp.up_proj.weight"] = _weight(
            ours, here + "gate_up"
        ).chunk(2)
        state[name + "mlp.down_proj.weight"] = _weight(ours, here + "down")
        state[name + "self_attn.o_proj.weight"] = _weight(ours, here + "o")
        state[name + "input_layernorm.weight"] = ours[here + "norm1"]
        state[name + "post_attention_layernorm.weight"] = ours[here + "norm2"]
    theirs.load_state_dict(state, assign=True)
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(config)  # its table is no parameter
    theirs.float().eval()
    return theirs


def _weight(tensors: dict[str, Tensor], name: str) -> Tensor:
    """The linear's weight as bitsandbytes unpacks it, or as it is."""
    prefix = f"{name}.weight."
    state = {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
    if not state:
        return tensors[f"{name}.weight"]
    library = bitsandbytes().functional
    weight: Tensor = library.dequantize_4bit(tensors[f"{name}.weight"], library.QuantState.from_dict(state, CPU))
    return weight.bfloat16()


def _config(shape: Shape, intermediate: int) -> "transformers.Qwen2Config":
    return transformers.Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=shape.context_tokens,
        rms_norm_eps=shape.norm_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        tie_word_embeddings=False,
    )
