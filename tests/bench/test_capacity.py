"""The simulated day: its clock is that of measured steps, and its queue the product's own."""

import json
import random
from pathlib import Path

import pytest

from bench.capacity import PIECE, Day, Engine, House, Question, measured
from engine.backends.qwen2.scheduler import Costs
from engine.gate import Gate, Limits


def question(prompt: int, answer: int, at: float = 0.0) -> Question:
    return Question(tokens=[0] * prompt, arrived_at=at, person="one", turns_left=1, answer=answer, asked_s=at)


def costs() -> Costs:
    return Costs(row_s=0.001, decode_s={1: 0.1, 2: 0.11, 8: 0.2})


def test_an_answer_alone_takes_its_prompt_and_a_step_for_each_token() -> None:
    engine, alone = Engine(costs()), question(prompt=100, answer=50)
    engine.begin(alone, now=7.0)
    ended: list[Question] = []
    while not ended:
        ended = engine.advance(until=1000.0)
    assert ended == [alone]
    assert alone.first_s == pytest.approx(7.0 + 0.1 + 100 * 0.001)
    assert engine.now == pytest.approx(alone.first_s + 49 * 0.1)


def test_answers_at_once_share_their_steps() -> None:
    engine = Engine(costs())
    for _ in range(2):
        engine.begin(question(prompt=10, answer=50), now=0.0)
    ended: list[Question] = []
    while len(ended) < 2:
        ended += engine.advance(until=1000.0)
    assert engine.now == pytest.approx(0.1 + 0.02 + 49 * 0.11)


def test_more_engines_shorten_the_wait_and_everybody_is_answered() -> None:
    waits = []
    for engines in (1, 4):
        house = House(staff=40, sessions=1, turns=2)
        day = Day(house, [Engine(costs()) for _ in range(engines)], Gate(Limits(engines, 1000, 3)), random.Random(1))
        day.run()
        assert len(day.answered) == 80
        waits.append(sum(one.admitted_s - one.asked_s for one in day.answered))
    assert waits[1] < waits[0] / 4


def test_steps_take_what_was_measured_with_the_first_number_of_threads(tmp_path: Path) -> None:
    steps = {"1 sequences": [0.07, 0.1], "8 sequences": [0.15, 0.2], "prefill of a token": [0.006]}
    slower = {name: [2 * seconds for seconds in found] for name, found in steps.items()}
    (tmp_path / "step.json").write_text(json.dumps({"figures": {"2 threads": steps, "1 threads": slower}}))
    costs = measured(tmp_path / "step.json", faster=2)
    assert (costs.decode_s[1], costs.decode_s[8]) == (0.05, 0.1)
    assert costs.row_s == pytest.approx((PIECE * 0.003 - 0.05) / PIECE)  # the weights' reading is in every step


def test_figures_without_numbers_of_threads_are_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "step.json").write_text(json.dumps({"figures": {"1 sequences": [0.07, 0.1]}}))
    with pytest.raises(SystemExit, match=r"run `python -m bench\.step` anew"):
        measured(tmp_path / "step.json", faster=1)
