"""Each request's token is chosen by its own values, whatever else is in the batch."""

from collections import Counter

import pytest
import torch

from engine.backends.qwen2.sampler import Chooser, sample
from engine.types import Sampling

CPU = torch.device("cpu")
OFF = Sampling(temperature=1, top_p=1, top_k=0, repetition_penalty=1)


def chooser(sampling: Sampling, prompt: tuple[int, ...] = ()) -> Chooser:
    return Chooser(sampling, prompt, 100, CPU)


def draws(logits: list[float], sampling: Sampling, count: int = 2000) -> Counter[int | None]:
    """Draw that many tokens of the same logits in one batch."""
    rows = torch.tensor(logits).expand(count, -1)
    return Counter(sample(rows, [chooser(sampling) for _ in range(count)]))


def changed(**values: object) -> Sampling:
    return Sampling(**({"temperature": 1, "top_p": 1, "top_k": 0, "repetition_penalty": 1} | values))  # type: ignore[arg-type]  # names and types by the caller


def test_temperature_zero_takes_the_largest() -> None:
    assert draws([1.0, 3.0, 2.0], changed(temperature=0), 5) == {1: 5}


def test_frequencies_follow_the_probabilities() -> None:
    logits = torch.tensor([0.5, 0.3, 0.2]).log().tolist()
    counts = draws(logits, OFF, 20_000)
    assert [counts[i] / 20_000 for i in range(3)] == pytest.approx([0.5, 0.3, 0.2], abs=0.02)


def test_temperature_sharpens() -> None:
    logits = torch.tensor([0.5, 0.3, 0.2]).log().tolist()
    squares = [0.25 / 0.38, 0.09 / 0.38, 0.04 / 0.38]
    counts = draws(logits, changed(temperature=0.5), 20_000)
    assert [counts[i] / 20_000 for i in range(3)] == pytest.approx(squares, abs=0.02)


def test_top_k_and_top_p_keep_the_most_likely() -> None:
    logits = torch.tensor([0.1, 0.4, 0.2, 0.3]).log().tolist()
    assert set(draws(logits, changed(top_k=2))) == {1, 3}
    assert set(draws(logits, changed(top_p=0.6))) == {1, 3}
    assert set(draws(logits, changed(top_p=0.75))) == {1, 2, 3}
    assert set(draws(logits, changed(top_p=1e-9))) == {1}


def test_the_penalty_makes_what_was_there_less_likely() -> None:
    greedy = changed(temperature=0, repetition_penalty=1.5)
    fresh, used = chooser(greedy), chooser(greedy, (1,))
    assert sample(torch.tensor([[2.0, 2.5], [2.0, 2.5]]), [fresh, used]) == [1, 0]
    fresh.note(1)
    assert sample(torch.tensor([[-2.0, -1.5]]), [fresh]) == [0]


def test_a_seed_gives_the_same_tokens_in_any_company() -> None:
    logits = torch.randn(1, 50)
    alone = [sample(logits, [one]) for one in [chooser(changed(seed=7))] for _ in range(10)]
    crowd = [
        chooser(changed(seed=1)),
        chooser(changed(seed=7)),
        chooser(changed(temperature=0)),
        chooser(changed(top_k=5)),
    ]
    together = [sample(logits.expand(4, -1), crowd)[1:2] for _ in range(10)]
    assert together == alone
    assert len({token for (token,) in alone}) > 1


def test_a_row_without_a_finite_maximum_is_told_apart() -> None:
    rows = torch.tensor([[float("nan"), 1.0], [0.0, 1.0]])
    assert sample(rows, [chooser(OFF), chooser(changed(temperature=0))]) == [None, 1]


def test_frequency_and_presence_weigh_what_the_answer_has_said_and_not_the_prompt() -> None:
    counted = chooser(changed(temperature=0, frequency_penalty=0.4), prompt=(0,))
    present = chooser(changed(temperature=0, presence_penalty=0.6), prompt=(0,))
    rows = [[2.0, 1.9, 1.0], [2.0, 1.9, 1.0]]
    assert sample(torch.tensor(rows), [counted, present]) == [0, 0]  # the prompt's own token costs nothing
    for one in (counted, present):
        one.note(0)
    assert sample(torch.tensor(rows), [counted, present]) == [1, 1]
    counted.note(1)
    present.note(1)
    assert sample(torch.tensor(rows), [counted, present]) == [0, 0]
    counted.note(0)  # said twice: 0.8 off; for presence that is still 0.6
    present.note(0)
    assert sample(torch.tensor(rows), [counted, present]) == [1, 0]


def test_logprobs_are_the_models_own_whatever_is_drawn() -> None:
    telling = chooser(changed(temperature=0, logprobs=2, presence_penalty=2))
    telling.note(1)
    logits = torch.tensor([[0.2, 0.5, 0.3]]).log()
    assert sample(logits.clone(), [telling]) == [2]
    assert telling.told is not None
    logprob, likeliest = telling.told
    assert logprob == pytest.approx(float(logits[0, 2]))
    assert [token for token, _ in likeliest] == [1, 2]
