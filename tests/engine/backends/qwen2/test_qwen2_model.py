"""The forward pass equals transformers' on the same 4-bit weights, in whatever pieces and company the tokens come."""

from pathlib import Path

import torch
from transformers import Qwen2ForCausalLM

from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.linear import Dense
from engine.backends.qwen2.model import Piece, Qwen2, neighbours
from engine.backends.qwen2.quantize import ready_folder
from tests.engine.backends.qwen2.conftest import CPU
from tests.engine.backends.qwen2.tiny import make_tiny, tiny_source

IDS = [(i * 37 + 11) % 256 for i in range(60)]


def cache_for(model: Qwen2) -> KVCache:
    return KVCache(model.shape, 6, 128, CPU)


def with_weights_of(folder: Path, model: Qwen2) -> Qwen2ForCausalLM:
    """Transformers' model with our linears' weights, unpacked."""
    reference = Qwen2ForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    shape = model.shape
    rows = [shape.heads * shape.head_size] + [shape.kv_heads * shape.head_size] * 2

    def weight(linear: object) -> torch.Tensor:
        assert isinstance(linear, Dense)
        return linear.weight

    with torch.no_grad():
        for theirs, ours in zip(reference.model.layers, model.layers, strict=True):
            attention, mlp = theirs.self_attn, theirs.mlp
            for part, value in zip(
                (attention.q_proj, attention.k_proj, attention.v_proj), weight(ours.qkv).split(rows), strict=True
            ):
                part.weight.copy_(value)
            attention.o_proj.weight.copy_(weight(ours.o))
            for part, value in zip((mlp.gate_proj, mlp.up_proj), weight(ours.gate_up).chunk(2), strict=True):
                part.weight.copy_(value)
            mlp.down_proj.weight.copy_(weight(ours.down))
        if not shape.tied:
            reference.lm_head.weight.copy_(weight(model.head))
    reference.eval()
    return reference


def close(ours: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Within bfloat16 noise: a few parts in a hundred of the logits' spread."""
    return bool((ours.float() - theirs.float()).abs().max() < 0.05 * theirs.float().std())


@torch.inference_mode()
def test_logits_equal_transformers(tiny_folder: Path, tiny_model: Qwen2) -> None:
    theirs = with_weights_of(tiny_folder, tiny_model)(torch.tensor([IDS])).logits[0]
    for end in (2, 17, 60):
        ours = tiny_model.step([Piece(0, 0, IDS[:end], logits=True)], cache_for(tiny_model))
        assert close(ours[0], theirs[end - 1])


def test_pieces_and_decodes_give_the_same_as_the_whole(tiny_model: Qwen2) -> None:
    whole = tiny_model.step([Piece(0, 0, IDS, logits=True)], cache_for(tiny_model))
    cache = cache_for(tiny_model)
    assert not len(tiny_model.step([Piece(3, 0, IDS[:25], logits=False)], cache))
    tiny_model.step([Piece(3, 25, IDS[25:50], logits=False)], cache)
    for at in range(50, 60):
        last = tiny_model.step([Piece(3, at, [IDS[at]], logits=True)], cache)
    assert close(last[0], whole[0])


def test_company_in_the_batch_changes_nothing(tiny_model: Qwen2) -> None:
    """Decodes of different lengths in neighbouring and distant slots, with a prompt's piece in between."""
    alone, cache = cache_for(tiny_model), cache_for(tiny_model)
    lengths = {0: 5, 1: 40, 2: 11, 5: 30}
    for kv in (alone, cache):
        for slot, length in lengths.items():
            tiny_model.step([Piece(slot, 0, IDS[:length], logits=False)], kv)
    expected = [tiny_model.step([Piece(slot, n, [IDS[n]], logits=True)], alone)[0] for slot, n in lengths.items()]
    prompt = Piece(4, 0, IDS[:20], logits=True)
    expected.append(tiny_model.step([prompt], alone)[0])
    pieces = [Piece(slot, n, [IDS[n]], logits=True) for slot, n in reversed(lengths.items())]
    together = tiny_model.step([prompt, *pieces], cache)
    assert all(close(ours, single) for ours, single in zip(together.flip(0), expected, strict=True))


def test_packed_and_unpacked_weights_are_the_same_numbers(ready: Path, tiny_model: Qwen2) -> None:
    packed = Qwen2(ready, CPU, unpack=False)
    ours = packed.step([Piece(0, 0, IDS, logits=True)], cache_for(packed))
    assert close(ours[0], tiny_model.step([Piece(0, 0, IDS, logits=True)], cache_for(tiny_model))[0])


def test_tied_and_unquantised_weights_run_as_well(tmp_path: Path) -> None:
    source = tiny_source(make_tiny(tmp_path / "tied", tied=True))
    folder = ready_folder(source, "none", tmp_path, CPU, lambda _: None)
    model = Qwen2(folder, CPU, unpack=False)
    with torch.inference_mode():
        theirs = Qwen2ForCausalLM.from_pretrained(source.folder, dtype=torch.bfloat16)(torch.tensor([IDS])).logits[0]
    assert close(model.step([Piece(0, 0, IDS, logits=True)], cache_for(model))[0], theirs[-1])


def test_decodes_are_grouped_where_their_slots_are_neighbours_and_their_lengths_alike() -> None:
    def at(slot: int, length: int) -> Piece:
        return Piece(slot, length - 1, [0], logits=True)

    assert neighbours([at(0, 10), at(1, 200), at(3, 10)]) == [slice(0, 2), slice(2, 3)]
    assert neighbours([at(0, 10), at(1, 3000), at(2, 3000)]) == [slice(0, 1), slice(1, 3)]
    assert neighbours([]) == []
