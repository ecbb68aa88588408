"""A model's source becomes a folder of ready weights, made once and mapped at every later start.

Knows transformers' Qwen2 and the layout of the ready folder: model.json (the shape, below), weights.safetensors,
tokenizer.json without and control.json with the control tokens alone, and manifest.json with the checksums of the
others. Nothing half-written is ever used: the folder is made under another name and renamed. Knows nothing of how a
model runs.
"""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from engine.backends.qwen2 import lean_torch
from engine.backends.qwen2.linear import can_quantize, quantize
from engine.backends.qwen2.ready import (
    CONTROL,
    MANIFEST,
    SHAPE,
    TOKENIZER,
    WEIGHTS,
    Shape,
    checksum,
    folder_of,
    is_whole,
)
from engine.backends.qwen2.source import ModelSource, check_space, disk_full, saving_to, unusable
from engine.types import Progress, Report

if TYPE_CHECKING:
    from transformers import Qwen2Config, Qwen2ForCausalLM


def ready_folder(source: ModelSource, method: str, models_dir: Path, device: torch.device, report: Report) -> Path:
    """Return the folder of ready weights, made if it is not there or is damaged. Raises EngineError with a sentence.

    `method` is "nf4" or "none". The work of making it is done on `device`.
    """
    folder = folder_of(source, method, models_dir)
    return folder if is_whole(folder, report) else make(source, method, folder, device, report)


def make(source: ModelSource, method: str, folder: Path, device: torch.device, report: Report) -> Path:
    """Make the folder anew, and return it."""
    with saving_to(folder.parent), _made_aside(folder) as aside:
        _make(source, method, aside, device, report)
    return folder


@contextmanager
def _made_aside(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder` that takes its place at the end, or goes if anything is wrong."""
    for left in folder.parent.glob("*.making-*"):  # by a process that was killed
        if not psutil.pid_exists(int(left.suffix.removeprefix(".making-"))):
            shutil.rmtree(left, ignore_errors=True)
    aside = folder.with_name(f"{folder.name}.making-{os.getpid()}")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    try:
        yield aside
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _make(source: ModelSource, method: str, folder: Path, device: torch.device, report: Report) -> None:
    report(Progress("reading the model"))
    model, tokenizer = _load(source, report)
    shape = shape_of(model.config, tokenizer.eos_token_id)
    check_space(folder, size_on_disk(model, method))
    tensors = tensors_of(model, shape, method, device, report)
    report(Progress("saving"))
    _save(tensors, folder / WEIGHTS)
    (folder / SHAPE).write_text(json.dumps(asdict(shape), indent=1))
    text = json.loads(tokenizer.backend_tokenizer.to_str())
    (folder / CONTROL).write_text(json.dumps(text["added_tokens"], indent=1), encoding="utf-8")
    (folder / TOKENIZER).write_text(json.dumps(_plain(text), ensure_ascii=False), encoding="utf-8")
    files = (SHAPE, WEIGHTS, TOKENIZER, CONTROL)
    (folder / MANIFEST).write_text(json.dumps({name: checksum(folder / name, lambda _: None) for name in files}))


def _plain(tokenizer: dict[str, Any]) -> dict[str, Any]:
    """Without control tokens, and with each merge as one text instead of two, which is read sooner."""
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    return tokenizer | {"added_tokens": [], "model": tokenizer["model"] | {"merges": merges}}


def _load(source: ModelSource, report: Report) -> tuple["Qwen2ForCausalLM", Any]:
    lean_torch.complete()
    from transformers import AutoConfig, AutoTokenizer, GgufConfig, Qwen2ForCausalLM
    from transformers.utils import logging

    from engine.backends.qwen2.gguf_reading import quickly

    logging.disable_progress_bar()
    gguf: dict[str, Any] = {"gguf_file": source.gguf_file} if source.gguf_file else {}
    with quickly(report):
        # All of them read a folder, and no hub.
        config = AutoConfig.from_pretrained(source.folder, trust_remote_code=False, **gguf)  # nosec B615
        if config.model_type != "qwen2":
            raise unusable(
                f"{source.name} is of the architecture {config.model_type!r}; this engine runs qwen2 (Qwen2, Qwen2.5)."
            )
        tokenizer = AutoTokenizer.from_pretrained(source.folder, trust_remote_code=False, **gguf)  # nosec B615
        if gguf:
            gguf["quantization_config"] = GgufConfig(dequantize=True)
        model = Qwen2ForCausalLM.from_pretrained(source.folder, dtype=torch.bfloat16, **gguf)  # nosec B615
        return model, tokenizer


def size_on_disk(model: "Qwen2ForCausalLM", method: str) -> int:
    """Bytes of the ready folder's weights: linears in half a byte with their scales, embedding and head in two."""
    ends = {model.model.embed_tokens.weight, model.lm_head.weight}  # one and the same where they are tied
    two_bytes: int = sum(weight.numel() for weight in ends)
    others: int = sum(weight.numel() for weight in model.parameters()) - two_bytes
    return 2 * two_bytes + (others * 5 // 8 if method == "nf4" else 2 * others)


def _save(tensors: dict[str, Tensor], file: Path) -> None:
    try:
        save_file(tensors, file)
    except SafetensorError as error:  # which holds the system's own only in words
        if shutil.disk_usage(file.parent).free < sum(tensor.nbytes for tensor in tensors.values()):
            raise disk_full(file.parent) from error
        raise


def shape_of(config: "Qwen2Config", tokenizer_end: int | None) -> Shape:
    rope: dict[str, Any] = dict(config.rope_parameters or {})
    if rope.get("rope_type", "default") != "default" or config.use_sliding_window:
        raise unusable(
            "This model stretches its context (rope scaling or a sliding window), which this engine does not do; "
            "use the model without it."
        )
    ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
    return Shape(
        hidden=config.hidden_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads or config.num_attention_heads,
        head_size=config.hidden_size // config.num_attention_heads,
        vocabulary=config.vocab_size,
        context_tokens=config.max_position_embeddings,
        norm_epsilon=config.rms_norm_eps,
        rope_theta=float(rope.get("rope_theta", 10_000.0)),
        end_tokens=tuple(sorted({end for end in [*ends, tokenizer_end] if end is not None})),
        tied=config.tie_word_embeddings,
    )


def tensors_of(
    model: "Qwen2ForCausalLM", shape: Shape, method: str, device: torch.device, report: Report
) -> dict[str, Tensor]:
    """Every tensor of the ready folder: q, k, v in one linear, gate and up in one, each quantised if it can be."""
    body = model.model
    tensors = {"embedding": body.embed_tokens.weight, "norm": body.norm.weight}
    for index, layer in enumerate(body.layers):
        report(Progress("quantising" if method == "nf4" else "converting", index, shape.layers + 1))
        attention, mlp = layer.self_attn, layer.mlp
        qkv = (attention.q_proj, attention.k_proj, attention.v_proj)
        linears = {
            "qkv": torch.cat([part.weight for part in qkv]),
            "o": attention.o_proj.weight,
            "gate_up": torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]),
            "down": mlp.down_proj.weight,
        }
        for name, weight in linears.items():
            tensors |= _linear(f"layers.{index}.{name}", weight, method, device)
        tensors[f"layers.{index}.qkv.bias"] = torch.cat([part.bias for part in qkv])
        tensors[f"layers.{index}.norm1"] = layer.input_layernorm.weight
        tensors[f"layers.{index}.norm2"] = layer.post_attention_layernorm.weight
    report(Progress("quantising" if method == "nf4" else "converting", shape.layers, shape.layers + 1))
    if not shape.tied:  # as the source has it: in 4 bits it is worse, see docs/log.md
        tensors["head.weight"] = model.lm_head.weight
    return {name: tensor.detach().contiguous() for name, tensor in tensors.items()}


def _linear(name: str, weight: Tensor, method: str, device: torch.device) -> dict[str, Tensor]:
    if method == "nf4" and can_quantize(weight):
        return {f"{name}.weight{part}": value for part, value in quantize(weight.detach().to(device)).items()}
    return {f"{name}.weight": weight}
