"""The packaged model as every peer wants it: a Hugging Face folder with bfloat16 weights, made once from the GGUF."""

from pathlib import Path

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


def packaged_gguf() -> Path:
    """The GGUF file itself."""
    source = weights.resolve(Settings(model="packaged"), _quiet)
    return source.folder / str(source.gguf_file)


def _quiet(progress: Progress) -> None:
    """The servers show progress themselves."""
