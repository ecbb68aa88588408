"""The forward pass equals transformers' on the same 4-bit weights, in whatever pieces and company the tokens come."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import transformers

from engine.backends.qwen2 import attention
from engine.backends.qwen2.attention import LONG, Piece, Pieces, neighbours
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import FeedForward, Qwen2
from engine.backends.qwen2.quantize import ready_folder
from tests.engine.backends.qwen2.conftest import CPU
from tests.engine.backends.qwen2.reference import in_transformers
from tests.engine.backends.qwen2.tiny import make_tiny, tiny_source

BFLOAT16 = 0.2  # of the logits' spread, by the rounding of activations
IDS = [(i * 37 + 11) % 256 for i in range(60)]


def cache_for(model: Qwen2) -> KVCache:
    return KVCache(model.shape, 6, 128, CPU, model.dtype)


def close(ours: torch.Tensor, theirs: torch.Tensor, noise: float = 1e-4) -> bool:
    """Within a fraction of the logits' spread: what float32 sums differ by that were added up in another order."""
    return bool((ours.float() - theirs.float()).abs().max() < noise * theirs.float().std())


@torch.inference_mode()
def test_logits_equal_transformers(ready: Path, tiny_model: Qwen2) -> None:
    theirs = in_transformers(ready)(torch.tensor([IDS])).logits[0]
    for end in (2, 17, 60):
        ours = tiny_model.step([Piece(0, 0, IDS[:end], logits=1)], cache_for(tiny_model))
        assert close(ours[0], theirs[end - 1])


@torch.inference_mode()
def test_packed_weights_in_bfloat16_are_as_exact_as_transformers_in_bfloat16(ready: Path) -> None:
    packed, reference = Qwen2.read(ready, CPU, unpack=False), in_transformers(ready)
    exact = reference(torch.tensor([IDS])).logits[0, -1]
    theirs = reference.bfloat16()(torch.tensor([IDS])).logits[0, -1]
    ours = packed.step([Piece(0, 0, IDS, logits=1)], cache_for(packed))[0]
    assert (ours - exact).abs().mean() < 1.5 * (theirs - exact).abs().mean()


def test_pieces_and_decodes_give_the_same_as_the_whole(tiny_model: Qwen2) -> None:
    whole = tiny_model.step([Piece(0, 0, IDS, logits=1)], cache_for(tiny_model))
    cache = cache_for(tiny_model)
    assert not len(tiny_model.step([Piece(3, 0, IDS[:25], logits=0)], cache))
    tiny_model.step([Piece(3, 25, IDS[25:50], logits=0)], cache)
    for at in range(50, 60):
        last = tiny_model.step([Piece(3, at, [IDS[at]], logits=1)], cache)
    assert close(last[0], whole[0])


def test_company_in_the_batch_changes_nothing(tiny_model: Qwen2) -> None:
    """Decodes of different lengths in neighbouring and distant slots, with a prompt's piece in between."""
    alone, cache = cache_for(tiny_model), cache_for(tiny_model)
    lengths = {0: 5, 1: 40, 2: 11, 5: 30}
    for kv in (alone, cache):
        for slot, length in lengths.items():
            tiny_model.step([Piece(slot, 0, IDS[:length], logits=0)], kv)
    expected = [tiny_model.step([Piece(slot, n, [IDS[n]], logits=1)], alone)[0] for slot, n in lengths.items()]
    prompt = Piece(4, 0, IDS[:20], logits=1)
    expected.append(tiny_model.step([prompt], alone)[0])
    pieces = [Piece(slot, n, [IDS[n]], logits=1) for slot, n in reversed(lengths.items())]
    together = tiny_model.step([prompt, *pieces], cache)
    assert all(close(ours, single) for ours, single in zip(together.flip(0), expected, strict=True))


def test_prompts_go_through_their_own_feed_forward(tiny_model: Qwen2, ready: Path) -> None:
    """The last token of a prompt among them, if it is read by itself; what comes out is given to whom it belongs."""
    model, rows = Qwen2.read(ready, CPU, unpack=True), Counter[str]()

    def noted(name: str, feed: FeedForward) -> Callable[[torch.Tensor], torch.Tensor]:
        def run(x: torch.Tensor) -> torch.Tensor:
            rows[name] += len(x)
            return feed(x)

        return run

    model.layers = [
        replace(layer, answers=noted("answers", layer.answers), prompts=noted("prompts", layer.answers))  # type: ignore[arg-type]  # stand-ins
        for layer in model.layers
    ]
    caches = [cache_for(tiny_model), cache_for(tiny_model)]
    for cache in caches:
        tiny_model.step([Piece(0, 0, IDS[:9], logits=0), Piece(1, 0, IDS[5:20], logits=0)], cache)
    last = Piece(0, 9, IDS[9:10], logits=1, is_prompt=True)
    prompt = Piece(2, 0, IDS[30:50], logits=1, is_prompt=True)
    answers = [Piece(1, 15, IDS[:1], logits=1), Piece(3, 0, IDS[:2], logits=2)]
    ours, plain = (
        one.step([last, prompt, *answers], cache) for one, cache in zip((model, tiny_model), caches, strict=True)
    )
    assert rows == {"answers": 3 * len(model.layers), "prompts": 21 * len(model.layers)}
    assert all(close(one, other) for one, other in zip(ours, plain, strict=True))


@pytest.mark.parametrize("unpack", [True, False])
def test_tied_and_unquantised_weights_run_as_well(tmp_path: Path, unpack: bool) -> None:
    source = tiny_source(make_tiny(tmp_path / "tied", tied=True))
    model = Qwen2.read(ready_folder(source, "none", tmp_path, CPU, lambda _: None), CPU, unpack=unpack)
    with torch.inference_mode():
        reference = transformers.Qwen2ForCausalLM.from_pretrained(source.folder, dtype=torch.float32)
        theirs = reference(torch.tensor([IDS])).logits[0]
    ours = model.step([Piece(0, 0, IDS, logits=1)], cache_for(model))
    assert close(ours[0], theirs[-1], 1e-4 if unpack else BFLOAT16)


def test_decodes_are_grouped_where_their_slots_are_neighbours_and_their_lengths_alike() -> None:
    def at(slot: int, length: int) -> Piece:
        return Piece(slot, length - 1, [0], logits=1)

    assert neighbours([at(0, 10), at(1, 200), at(3, 10)]) == [slice(0, 2), slice(2, 3)]
    assert neighbours([at(0, 10), at(1, 3000), at(2, 3000)]) == [slice(0, 1), slice(1, 3)]
    assert neighbours([]) == []


@pytest.mark.parametrize("room", [1, attention.SCORES])
@torch.inference_mode()
def test_a_long_piece_in_bfloat16_sees_what_it_sees_in_float32(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU the one goes through products of its own, the other through torch's call; nobody sees what follows.

    Where there is not room for the scores of all heads, some go after the others.
    """
    monkeypatch.setattr(attention, "SCORES", room)
    torch.manual_seed(0)
    tokens, heads, groups, size = 64, 2, 3, 16
    start = LONG // tokens
    piece = Piece(1, start, [0] * tokens, logits=0)
    query = torch.randn(tokens, heads, groups, size).bfloat16()
    keys, values = torch.randn(2, 3, heads, start + tokens + 5, size).bfloat16()
    values[:, :, start:] *= 10  # or what is hidden would hardly be missed among so much
    long, exact = (Pieces([piece], groups, CPU, dtype) for dtype in (torch.bfloat16, torch.float32))
    assert [batch.prompts[0].is_long for batch in (long, exact)] == [True, False]
    expected = exact.attend(query.float(), keys.float(), values.float())
    seen = long.attend(query, keys, values)
    assert close(seen, expected, BFLOAT16)
    keys[:, :, piece.end - 1 :] = values[:, :, piece.end - 1 :] = 9.0
    assert torch.equal(long.attend(query, keys, values)[:-1], seen[:-1])
