"""Guesses from what was said before: found, worth their cost or not, and never a change of the answer."""

import pytest
import torch

from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.lookup import Lookup, worth_guessing
from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.scheduler import Costs
from engine.backends.qwen2.tokens import Tokens
from engine.types import Sampling
from tests.engine.backends.qwen2.conftest import CPU, ScriptedModel, StartWorker
from tests.engine.backends.qwen2.test_qwen2_worker import GREEDY, events_of, text_of

CHEAP = Costs(decode_s={rows: 0.020 + 0.001 * rows for rows in range(1, 30)})
DEAR = Costs(decode_s={rows: 0.020 * rows for rows in range(1, 30)})


class Fixed(Costs):
    """What steps cost by themselves on this machine, which may be busy, shall not say how long guesses are."""

    def learn(self, decodes: int, prefill: int, seconds: float) -> None: ...


def test_what_followed_the_last_three_tokens_is_guessed() -> None:
    lookup = Lookup([1, 2, 3, 4, 5, 6, 1, 2, 3])
    assert lookup.guess(2) == [4, 5]
    assert lookup.guess(9) == [4, 5, 6, 1, 2, 3]
    lookup.tokens.append(9)
    assert lookup.guess(9) == []


def test_the_newest_place_counts() -> None:
    lookup = Lookup([1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3])
    assert lookup.guess(1) == [5]


def test_a_text_that_goes_round_is_guessed_from_its_own_beginning() -> None:
    lookup = Lookup([7, 7, 7])
    assert lookup.guess(5) == []
    lookup.tokens.append(7)
    assert lookup.guess(5) == [7]


def test_guesses_are_as_long_as_their_rows_are_cheap() -> None:
    lookup, guess = Lookup([]), [1, 2, 3, 4, 5, 6, 7]
    assert worth_guessing([(lookup, guess)], 1, DEAR, 7) == 0
    assert worth_guessing([(lookup, guess)], 1, CHEAP, 7) == 4
    lookup.learn(7, 7)
    assert worth_guessing([(lookup, guess)], 1, CHEAP, 7) == 7
    assert worth_guessing([(lookup, guess)], 1, CHEAP, 2) == 2
    assert worth_guessing([], 4, CHEAP, 7) == 0


def test_wrong_guesses_end_and_are_tried_again_later() -> None:
    lookup, guess = Lookup([]), [1, 2, 3, 4]
    for _ in range(30):
        lookup.learn(4, 0)
    assert worth_guessing([(lookup, guess)], 1, CHEAP, 7) <= 1
    for _ in range(200):
        lookup.forgive()
    assert worth_guessing([(lookup, guess)], 1, CHEAP, 7) == 4
    assert (lookup.guessed, lookup.right) == (120, 0)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
async def test_the_answer_is_the_same_as_without(
    start_worker: StartWorker, tiny_model: Qwen2, temperature: float
) -> None:
    """A random model that is rewarded for repeating itself, so that some guesses are right and some are wrong."""
    sampling = Sampling(temperature=temperature, seed=7, repetition_penalty=0.5)
    prompts = [[(i * k) % 50 for i in range(20 + k)] * 2 for k in range(1, 5)]

    async def answers(lookahead: int) -> list[list[int]]:
        worker = start_worker(tiny_model, KVCache(tiny_model.shape, 4, 256, CPU, tiny_model.dtype), lookahead)
        worker.scheduler.costs = Fixed(1e-9, {1: 0.02})
        streams = [worker.open(prompt, sampling, 120) for prompt in prompts]
        for stream in streams:
            await events_of(stream)
        if lookahead:
            assert any(0 < stream.lookup.right < stream.lookup.guessed for stream in streams)
        return [stream.tokens for stream in streams]

    assert await answers(7) == await answers(0)


async def test_a_text_that_is_said_again_takes_fewer_steps(start_worker: StartWorker, tokens: Tokens) -> None:
    text = "the world is in the hello of all things that were said, and a stop comes last."
    script = [*tokens.encode(text), tokens.end]
    prompt = tokens.encode("Say it again: " + text)
    model = ScriptedModel(lambda seen: script[min(len(seen) - len(prompt), len(script) - 1) % len(script)])
    worker = start_worker(model)
    worker.scheduler.costs = Fixed(1e-9, {1: 0.02})
    stream = worker.open(prompt, GREEDY, 200)
    assert text_of(await events_of(stream)) == text
    assert len(model.steps) < len(script) / 2
    assert stream.lookup.right > len(script) / 2


async def test_a_guess_past_the_end_of_the_answer_is_not_said(start_worker: StartWorker, tokens: Tokens) -> None:
    """The prompt goes on where the answer stops: at its limit, at a stop string."""
    text = "one two three four five six seven eight"
    script, prompt = tokens.encode(text), tokens.encode(text)
    model = ScriptedModel(lambda seen: script[(len(seen) - len(prompt)) % len(script)])
    worker = start_worker(model)
    limited = worker.open(prompt, GREEDY, 20)
    await events_of(limited)
    assert len(limited.tokens) == len(prompt) + 20
    stopped = worker.open(prompt, Sampling(temperature=0, repetition_penalty=1, stop=(" five",)), 200)
    assert text_of(await events_of(stopped)) == "one two three four"


def test_logits_of_a_guess_are_those_of_its_tokens_one_by_one(tiny_model: Qwen2) -> None:
    ids = [(i * 37 + 11) % 256 for i in range(40)]
    cache = KVCache(tiny_model.shape, 2, 128, CPU, tiny_model.dtype)
    for slot in (0, 1):
        tiny_model.step([Piece(slot, 0, ids[:30], logits=0)], cache)
    together = tiny_model.step([Piece(0, 30, ids[30:35], logits=5)], cache)
    single = [tiny_model.step([Piece(1, at, [ids[at]], logits=1)], cache)[0] for at in range(30, 35)]
    assert torch.allclose(together, torch.stack(single), atol=1e-4)
