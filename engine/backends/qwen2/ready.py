"""The folder of ready weights: its files, and the shape of the model in it. Knows nothing of how it is made or used."""

import json
from dataclasses import dataclass
from pathlib import Path

SHAPE, WEIGHTS, TOKENIZER, CONTROL = "model.json", "weights.safetensors", "tokenizer.json", "control.json"
MANIFEST = "manifest.json"


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
