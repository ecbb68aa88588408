"""The limit: the model's linears alone, output head included, in decode steps of so many rows.

python -m bench.linears 1 8 16          a line of JSON for each
"""

import json
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path

import torch

from bench.load import Figures
from engine.backends.qwen2 import weights
from engine.backends.qwen2.linear import has_kernel
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.quantize import ready_folder
from engine.hardware import physical_cores
from engine.settings import Settings

CPU = torch.device("cpu")
STEPS = 15


def packaged_ready() -> Path:
    """The folder of the packaged model's ready weights."""
    settings = Settings(model="packaged")
    source = weights.resolve(settings, lambda _: None)
    return ready_folder(source, "nf4", settings.models_dir, CPU, lambda _: None)


def load_model() -> Qwen2:
    """The packaged model as this machine would serve it."""
    torch.set_num_threads(Settings().threads or physical_cores())
    return Qwen2.read(packaged_ready(), CPU, unpack=not has_kernel(CPU), int8=has_kernel(CPU))


def limit(model: Qwen2, rows: int) -> Figures:
    """Of the median step: it gives each of `rows` streams a token, and begins none."""
    step_s(model, rows)
    seconds = [step_s(model, rows) for _ in range(STEPS)]
    middle = statistics.median(seconds)
    return Figures(rows, rows, rows / middle, 0.0, 0.0, middle, max(seconds))


@torch.inference_mode()
def step_s(model: Qwen2, rows: int) -> float:
    """Seconds of one step's linears for so many rows."""
    hidden = torch.randn(rows, model.shape.hidden, dtype=model.dtype)
    began = time.perf_counter()
    for layer in model.layers:
        layer.qkv(hidden)
        layer.o(hidden)
        gate, _ = layer.answers.gate_up(hidden).chunk(2, -1)
        layer.answers.down(gate)
    model.head(hidden)
    return time.perf_counter() - began


def main() -> None:
    model = load_model()
    for rows in map(int, sys.argv[1:]):
        print(json.dumps([asdict(limit(model, rows))]), flush=True)


if __name__ == "__main__":
    main()
