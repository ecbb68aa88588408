"""The limit: the model's linears alone, output head included, in decode steps of so many rows."""

import statistics
import time

import torch

from engine.backends.qwen2 import weights
from engine.backends.qwen2.linear import has_kernel
from engine.backends.qwen2.loading import physical_cores
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.quantize import ready_folder
from engine.settings import Settings

CPU = torch.device("cpu")
STEPS = 15


def load_model() -> Qwen2:
    """The packaged model as this machine would serve it."""
    settings = Settings(model="packaged")
    torch.set_num_threads(settings.threads or physical_cores())
    source = weights.resolve(settings, lambda _: None)
    folder = ready_folder(source, "nf4", settings.models_dir, CPU, lambda _: None)
    return Qwen2.read(folder, CPU, unpack=not has_kernel(CPU))


def limits(rows: list[int]) -> dict[int, float]:
    """Tokens per second that the linears alone would allow, by the number of rows in a step."""
    model = load_model()
    step_s(model, 1)  # bitsandbytes packs the weights anew at their first use
    return {count: count / statistics.median(step_s(model, count) for _ in range(STEPS)) for count in rows}


@torch.inference_mode()
def step_s(model: Qwen2, rows: int) -> float:
    """Seconds of one step's linears for so many rows."""
    hidden = torch.randn(rows, model.shape.hidden, dtype=model.dtype)
    began = time.perf_counter()
    for layer in model.layers:
        layer.qkv(hidden)
        layer.o(hidden)
        gate, _ = layer.gate_up(hidden).chunk(2, -1)
        layer.down(gate)
    model.head(hidden)
    return time.perf_counter() - began
