"""Slots and what they hold: a prefix is found again, copied where shared, and given up when the room is needed."""

import torch

from tests.engine.backends.qwen2.conftest import small_cache


def test_the_next_turn_takes_over_its_slot() -> None:
    cache = small_cache()
    taken = cache.take([1, 2, 3])
    assert taken is not None
    slot, cached = taken
    assert cached == 0
    slot.tokens += [1, 2, 3, 4]
    cache.release(slot)
    assert cache.cached([1, 2, 3, 4, 5, 6]) == 4
    assert cache.take([1, 2, 3, 4, 5, 6]) == (slot, 4)


def test_the_last_token_is_always_computed() -> None:
    cache = small_cache()
    slot, _ = cache.take([1, 2, 3]) or (None, 0)
    assert slot
    slot.tokens += [1, 2, 3]
    cache.release(slot)
    assert cache.take([1, 2, 3]) == (slot, 2)


def test_a_shared_beginning_is_copied_from_a_slot_in_use() -> None:
    cache = small_cache()
    first, _ = cache.take([1, 2, 3, 4]) or (None, 0)
    assert first
    first.tokens += [1, 2, 3, 4]
    cache.keys[0][first.index, :, :4] = 7.0
    second, cached = cache.take([1, 2, 3, 9, 9]) or (None, 0)
    assert second
    assert second is not first
    assert (cached, second.tokens) == (3, [1, 2, 3])
    assert torch.equal(
        cache.keys[0][second.index, :, :4], torch.tensor([7.0, 7.0, 7.0, 0.0])[None, :, None].expand(1, 4, 4)
    )


def test_a_long_conversation_keeps_its_slot_when_only_its_beginning_is_shared() -> None:
    cache = small_cache(slots=2)
    long, _ = cache.take([1] * 4) or (None, 0)
    assert long
    long.tokens += [1] * 3 + [2] * 50
    cache.release(long)
    other, cached = cache.take([1, 1, 1, 5]) or (None, 0)
    assert other is not long
    assert cached == 3
    assert cache.cached([1] * 3 + [2] * 60) == 53


def test_the_least_recently_used_slot_goes_first_and_used_ones_never() -> None:
    cache = small_cache(slots=2)
    a, _ = cache.take([1, 1]) or (None, 0)
    b, _ = cache.take([2, 2]) or (None, 0)
    assert a
    assert b
    assert cache.take([3, 3]) is None
    a.tokens, b.tokens = [1, 1], [2, 2]
    cache.release(a)
    cache.release(b)
    assert cache.take([3, 3]) == (a, 0)
    assert cache.in_use == 1


def test_its_memory_is_known() -> None:
    assert small_cache(slots=3, capacity=10).bytes == 3 * 10 * (2 * 1 * 1 * 4) * 4
