"""The packaged model as every peer wants it: a Hugging Face folder with bfloat16 weights, made once from the GGUF."""

from pathlib import Path
from typing import Any

from engine.backends.qwen2 import weights
from engine.settings import Settings
from engine.types import Progress


def packaged_folder() -> Path:
    """Return the folder, making it if it is not there. Peers quantise it to NF4 themselves."""
    settings = Settings(model="packaged")
    source = weights.resolve(settings, _quiet)
    folder = settings.models_dir / "bench" / source.identity
    if not (folder / "config.json").exists():
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

        file, plain = source.gguf_file, GgufConfig(dequantize=True)
        AutoModelForCausalLM.from_pretrained(
            source.folder, gguf_file=file, quantization_config=plain, dtype=torch.bfloat16
        ).save_pretrained(folder)
        AutoTokenizer.from_pretrained(source.folder, gguf_file=file).save_pretrained(folder)
    return folder


def transformers_nf4() -> Any:
    """The model in transformers, its linears brought to NF4 by bitsandbytes and its head in bfloat16."""
    import torch
    from transformers import AutoModelForCausalLM

    from bench.peers.naive import NF4

    return AutoModelForCausalLM.from_pretrained(packaged_folder(), dtype=torch.bfloat16, quantization_config=NF4)


def packaged_gguf() -> Path:
    """The GGUF file itself."""
    source = weights.resolve(Settings(model="packaged"), _quiet)
    return source.folder / str(source.gguf_file)


def _quiet(progress: Progress) -> None:
    """The servers show progress themselves."""
