"""The folder of ready weights: where it is, its files, whether they are whole, and the shape of the model in it.

Knows nothing of how it is made or used, and no torch: a folder is checked while torch is being imported.
"""

import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from engine.backends.qwen2.source import ModelSource
from engine.types import Progress, Report

SHAPE, WEIGHTS, TOKENIZER, CONTROL = "model.json", "weights.safetensors", "tokenizer.json", "control.json"
MANIFEST = "manifest.json"
FORMAT = 3  # raise it whenever the layout changes: folders of another format are made anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the forward pass must know of a Qwen2 beside its weights."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    context_tokens: int  # positions that it was trained for
    norm_epsilon: float
    rope_theta: float
    end_tokens: tuple[int, ...]
    tied: bool  # the output head has the embedding's weights

    @property
    def kv_numbers(self) -> int:
        """How many numbers the KV cache holds for one token."""
        return 2 * self.layers * self.kv_heads * self.head_size

    @staticmethod
    def read(folder: Path) -> "Shape":
        values = json.loads((folder / SHAPE).read_text())
        return Shape(**values | {"end_tokens": tuple(values["end_tokens"])})


def folder_of(source: ModelSource, method: str, models_dir: Path) -> Path:
    """Where the ready weights of this source are, or will be. `method` is "nf4" or "none"."""
    label = re.sub(r"[^\w.-]+", "-", source.name)[-60:]
    return models_dir / "ready" / f"{label}-{source.identity}-{method}-{FORMAT}"


def is_whole(folder: Path, report: Report) -> bool:
    """Whether every file of the folder is as it was when it was made."""
    try:
        checksums: dict[str, int] = json.loads((folder / MANIFEST).read_text())
        return all(checksum(folder / name, report) == value for name, value in checksums.items())
    except (OSError, ValueError, AttributeError):
        return False


def checksum(file: Path, report: Report) -> int:
    """CRC-32: it is to find damage, not forgery, and takes a third of a second a gigabyte."""
    size, value, done = file.stat().st_size, 0, 0
    buffer = memoryview(bytearray(1 << 20))  # that fits into the processor's cache
    with file.open("rb", buffering=0) as stream:
        while count := stream.readinto(buffer):
            value, done = zlib.crc32(buffer[:count], value), done + count
            report(Progress("checking", done, size, "bytes"))
    return value
