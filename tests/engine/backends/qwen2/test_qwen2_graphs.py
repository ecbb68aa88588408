"""The static decode step, which CUDA replays as a graph, run without one: the same logits, and the same cache."""

import torch

from engine.backends.qwen2.attention import Piece, Pieces, Prompt, attend_beginning, attend_prompt
from engine.backends.qwen2.graphs import GraphedModel, at_least, filled_up, lengths
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2
from tests.engine.backends.qwen2.conftest import CPU, StartWorker
from tests.engine.backends.qwen2.test_qwen2_model import IDS, close
from tests.engine.backends.qwen2.test_qwen2_worker import GREEDY, events_of

LENGTHS = {0: 5, 3: 40, 1: 11, 6: 33, 4: 1}  # tokens that are read already, by slot
DECODES = [Piece(slot, length, [IDS[length]], logits=1) for slot, length in LENGTHS.items()]


def filled_cache(model: Qwen2) -> KVCache:
    cache = KVCache(model.shape, 7, 300, CPU, model.dtype)
    for slot, length in LENGTHS.items():
        model.step([Piece(slot, 0, IDS[:length], logits=0)], cache)
    return cache


def test_padded_rows_and_lengths_change_no_logits_and_nothing_in_the_cache(tiny_model: Qwen2) -> None:
    """Five decodes take eight rows; three of them write once more what the last one writes."""
    usual, static = filled_cache(tiny_model), filled_cache(tiny_model)
    expected = tiny_model.step(DECODES, usual)
    graphed = GraphedModel(tiny_model, static)
    found = graphed.step(DECODES, static)
    assert found.shape == expected.shape
    assert close(found, expected)
    for ours, theirs in zip((*static.keys, *static.values), (*usual.keys, *usual.values), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)
    assert close(graphed.step(DECODES[:1], static), expected[:1])  # the buffers are used again


def test_what_is_not_decodes_alone_takes_the_usual_way(tiny_model: Qwen2) -> None:
    usual, static = filled_cache(tiny_model), filled_cache(tiny_model)
    mixed = [*DECODES, Piece(2, 0, IDS[:9], logits=1), Piece(5, 0, IDS[:1], logits=0)]
    expected = tiny_model.step(mixed, usual)
    assert torch.equal(GraphedModel(tiny_model, static).step(mixed, static), expected)


async def test_answers_are_the_same(start_worker: StartWorker, tiny_model: Qwen2) -> None:
    async def answers(static: bool) -> list[list[int]]:
        cache = KVCache(tiny_model.shape, 8, 128, CPU, tiny_model.dtype)
        worker = start_worker(GraphedModel(tiny_model, cache) if static else tiny_model, cache)
        streams = [worker.open([(i * k) % 256 for i in range(10 + 3 * k)], GREEDY, 24) for k in range(1, 8)]
        for stream in streams:
            await events_of(stream)
        return [stream.tokens for stream in streams]

    assert await answers(static=True) == await answers(static=False)


def test_the_next_number_of_rows_and_the_next_length_are_taken(tiny_model: Qwen2) -> None:
    assert lengths(4096) == [256, 1024, 4096]
    assert lengths(100) == [100]
    assert [at_least(wanted, [1, 2, 4, 8]) for wanted in (1, 3, 8)] == [1, 4, 8]
    for slots, batches in {1: [1], 2: [1, 2], 7: [1, 2, 4, 8], 22: [1, 2, 4, 8, 16, 32]}.items():
        assert GraphedModel(tiny_model, KVCache(tiny_model.shape, slots, 64, CPU, tiny_model.dtype)).batches == batches
    assert filled_up(DECODES[:3], 4) == [[IDS[5], IDS[40], IDS[11], IDS[11]], [5, 40, 11, 11], [0, 3, 1, 1]]


def test_flash_attention_of_a_beginning_is_the_masked_one(tiny_model: Qwen2) -> None:
    """CUDA takes a prompt's first piece without a mask."""
    shape = tiny_model.shape
    keys, values = torch.randn(2, 1, 2, shape.kv_heads, 50, shape.head_size)[:, 0]
    query = torch.randn(20, shape.kv_heads, shape.heads // shape.kv_heads, shape.head_size)
    [prompt] = Pieces([Piece(1, 0, IDS[:20], logits=1)], query.shape[2], CPU, torch.float32).prompts
    expected = attend_prompt(query, keys, values, prompt)
    without = Prompt(prompt.rows, prompt.slot, prompt.length, None, is_long=False)
    assert torch.allclose(attend_prompt(query, keys, values, without), expected, atol=1e-5)
    assert torch.equal(attend_beginning(query, keys, values, without), attend_prompt(query, keys, values, without))
