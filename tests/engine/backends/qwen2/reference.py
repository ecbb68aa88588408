"""Transformers' Qwen2 around our very own weights, unpacked, in float32 arithmetic: what both should come to."""

from torch import Tensor, device
from transformers import Qwen2Config, Qwen2ForCausalLM

from engine.backends.qwen2.linear import Dense
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.ready import Shape


def in_transformers(model: Qwen2) -> Qwen2ForCausalLM:
    """The model must have been loaded with `unpack=True`."""
    shape = model.shape
    with device("meta"):
        theirs = Qwen2ForCausalLM(_config(shape)).bfloat16()
    queries, keys = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    state: dict[str, Tensor] = {"model.embed_tokens.weight": model.embedding, "model.norm.weight": model.norm}
    state["lm_head.weight"] = _dense(model.head).weight
    for i, layer in enumerate(model.layers):
        qkv, bias = _dense(layer.qkv).weight, _dense(layer.qkv).bias
        assert bias is not None
        name = f"model.layers.{i}."
        for part, weight, offset in zip(
            "qkv", qkv.split([queries, keys, keys]), bias.split([queries, keys, keys]), strict=True
        ):
            state |= {f"{name}self_attn.{part}_proj.weight": weight, f"{name}self_attn.{part}_proj.bias": offset}
        gate, up = _dense(layer.gate_up).weight.chunk(2)
        state |= {f"{name}mlp.gate_proj.weight": gate, f"{name}mlp.up_proj.weight": up}
        state |= {
            f"{name}self_attn.o_proj.weight": _dense(layer.o).weight,
            f"{name}mlp.down_proj.weight": _dense(layer.down).weight,
        }
        state |= {f"{name}input_layernorm.weight": layer.norm1, f"{name}post_attention_layernorm.weight": layer.norm2}
    theirs.load_state_dict(state, assign=True)
    theirs.model.rotary_emb = type(theirs.model.rotary_emb)(_config(shape))  # its table is no parameter
    theirs.float().eval()
    return theirs


def _config(shape: Shape) -> Qwen2Config:
    return Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=4864,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=shape.context_tokens,
        rms_norm_eps=shape.norm_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": shape.rope_theta},
        tie_word_embeddings=False,
    )


def _dense(linear: object) -> Dense:
    assert isinstance(linear, Dense)
    return linear
