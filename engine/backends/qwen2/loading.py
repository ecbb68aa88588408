"""From the settings to a running engine: weights, tokenizer, model, cache and generation thread.

Knows the hardware's limits: device, memory for the KV cache, CPU threads. Blocks; call it off the event loop.
"""

from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from engine.backends.qwen2 import linear
from engine.backends.qwen2.graphs import graphed
from engine.backends.qwen2.kvcache import KVCache, slot_bytes
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.quantize import make
from engine.backends.qwen2.ready import WEIGHTS, Shape, folder_of
from engine.backends.qwen2.schema import Schemas
from engine.backends.qwen2.source import ModelSource, unusable
from engine.backends.qwen2.tokens import Tokens
from engine.backends.qwen2.worker import Worker
from engine.hardware import physical_cores
from engine.settings import Settings
from engine.types import WARMING_UP, Progress, Report

SPARE_SLOTS = 6  # conversations that stay cached while every place is taken
FLOAT16, INT8 = 4, 2  # times as large as packed weights
RESERVE = 1536 << 20  # bytes of a GPU's memory that the KV cache leaves at least


@dataclass(frozen=True, slots=True)
class Engine:
    source: ModelSource
    reason: str
    tokens: Tokens
    schemas: Schemas
    weights_bytes: int
    cache: KVCache
    worker: Worker


def load(source: ModelSource, whole: Path | None, settings: Settings, report: Report) -> Engine:
    """Return an engine that is ready to answer. Raises EngineError with a sentence that says what to do.

    `whole` is the source's folder of ready weights where there is one and it has been checked; None makes it.
    """
    device = choose_device(settings.device)
    torch.set_num_threads(threads := settings.threads or physical_cores())
    method = settings.quantize
    folder = whole or make(source, method, folder_of(source, method, settings.models_dir), device, report)
    report(Progress("loading"))
    unpack = _should_unpack(folder, device)
    int8 = not unpack and device.type == "cpu" and linear.has_kernel(device) and _has_room(folder, device, INT8)
    model = Qwen2.read(folder, device, unpack=unpack, int8=int8)
    tokens = Tokens(folder)
    cache = make_cache(model.shape, settings, device, model.dtype)
    report(Progress(WARMING_UP))
    ends = frozenset({*model.shape.end_tokens, *tokens.ends})
    worker = Worker(graphed(model, cache), cache, tokens, ends, threads, settings.lookup_tokens)
    worker.start()
    reason = source.reason + (UNPACKED if unpack and settings.quantize == "nf4" else "")
    return Engine(source, reason, tokens, Schemas(tokens), model.weights_bytes, cache, worker)


UNPACKED = " This CPU cannot multiply 4-bit weights directly, so they are unpacked to float16 in memory."


def choose_device(setting: str) -> torch.device:
    if setting == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if setting != "cpu" and not torch.cuda.is_available():
        raise unusable(f"QDESK_DEVICE is {setting}, but there is no CUDA device; set it to `auto` or `cpu`.")
    if setting.startswith("cuda:") and int(setting.removeprefix("cuda:")) >= torch.cuda.device_count():
        raise unusable(f"QDESK_DEVICE is {setting}, but there are {torch.cuda.device_count()} CUDA devices.")
    return torch.device(setting)


def make_cache(shape: Shape, settings: Settings, device: torch.device, dtype: torch.dtype) -> KVCache:
    """A cache as large as the setting allows, with slots of the whole context."""
    context = min(settings.max_context_tokens, shape.context_tokens)
    needed = slot_bytes(shape, context, dtype)
    slots = settings.max_concurrent_requests + SPARE_SLOTS
    room = settings.kv_cache_mb << 20 or room_for_cache(free_memory(device), device)
    if room < needed:
        raise unusable(
            f"One conversation of {context} tokens needs {needed / 2**20:.0f} MB of KV cache, and there are "
            f"{room / 2**20:.0f} MB for it; lower QDESK_MAX_CONTEXT_TOKENS or raise QDESK_KV_CACHE_MB."
        )
    if settings.kv_cache_mb:
        slots = room // needed
    return KVCache(shape, min(slots, room // needed), context, device, dtype)


def room_for_cache(free: int, device: torch.device) -> int:
    """Bytes of the free memory that the cache may take once the weights are loaded.

    On a GPU all but a reserve: for what a step computes with, for CUDA graphs, and for pieces that nobody can use. On a
    CPU half: the memory is others' as well.
    """
    return max(0, free - max(RESERVE, free // 10)) if device.type == "cuda" else free // 2


def free_memory(device: torch.device) -> int:
    """Bytes that can be had now."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else psutil.virtual_memory().available


def _should_unpack(folder: Path, device: torch.device) -> bool:
    """Whether there is no 4-bit kernel here, but room for the weights in float16."""
    return not linear.has_kernel(device) and _has_room(folder, device, FLOAT16)


def _has_room(folder: Path, device: torch.device, times: int) -> bool:
    """Whether so many times the packed weights leave half of what is free."""
    return times * (folder / WEIGHTS).stat().st_size < free_memory(device) // 2
