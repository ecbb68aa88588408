"""transformers' two ways to answer several requests on one model: a `generate` in a thread each, and its batching."""

import time
from threading import Thread
from typing import Any

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig, Qwen2ForCausalLM

PROMPT = 64  # tokens
FEWEST, TOGETHER = 8, 256  # tokens of an answer and of all of them, with a thread each: it is slow


def threads_tokens_per_s(model: Qwen2ForCausalLM, streams: int, tokens: int) -> float:
    """One `generate` a thread, all at once."""
    tokens = min(tokens, max(FEWEST, TOGETHER // streams))
    _generate(model, 0, 2)
    threads = [Thread(target=_generate, args=(model, number, tokens)) for number in range(streams)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return streams * tokens / (time.perf_counter() - began)


@torch.inference_mode()
def _generate(model: Qwen2ForCausalLM, number: int, tokens: int) -> None:
    ids = torch.tensor([_prompt(number)], device=model.device)
    generate: Any = model.generate
    generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False)


def batched_tokens_per_s(model: Qwen2ForCausalLM, streams: int, tokens: int) -> float:
    """Its continuous batching; the second round counts, when its cache is there."""
    prompts = [_prompt(number) for number in range(streams)]
    share = 0.5 if model.device.type == "cuda" else 0.02  # of the memory; a CPU's is others' too
    config = GenerationConfig(max_new_tokens=tokens, eos_token_id=-1, pad_token_id=0, do_sample=False)
    seconds = 0.0
    try:
        for _ in range(2):
            began = time.perf_counter()
            answers = model.generate_batch(
                prompts, config, ContinuousBatchingConfig(max_memory_percent=share), persistent_manager=True
            )
            seconds = time.perf_counter() - began
    finally:
        model.destroy_cached_continuous_batching_manager()
    return sum(len(answer.generated_tokens) for answer in answers.values()) / seconds


def _prompt(number: int) -> list[int]:
    return [(i * (2 * number + 3) + 11) % 200 + 1 for i in range(PROMPT)]
