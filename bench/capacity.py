"""How many engines a house needs: a day of its staff, played against the real gate and scheduler on a simulated clock.

python -m bench.step                                    # measures the machine whose engines these are to be
python -m bench.capacity                                # a day of 10,000; minutes for each number of engines
python -m bench.capacity --faster 20 --engines 2,3,4    # with engines twenty times as fast, which is a guess

Steps take what `bench.step` measured; everything else about the engine (batching, prefill in pieces, who goes first) is
the engine's own scheduler, and who waits is the product's own gate. No model runs. What people do is assumed and can be
changed: how often they ask, how long they think, how long prompts and answers are.
"""

import argparse
import heapq
import json
import math
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from bench.report import RESULTS, save
from engine.backends.qwen2.scheduler import Costs, Scheduler, Sequence
from engine.errors import QueueFull, UserLimit
from engine.gate import Gate, Limits, Ticket

PIECE = 256  # tokens of prefill in a step of bench.step's
HOUR = 3600.0
SLICE_S = 0.5  # how far one engine may go ahead of another
# Sessions begun in each hour of the day, as parts of the busiest one: a morning and an afternoon, and few at night.
DAY = (0, 0, 0, 0, 0, 0, 0.05, 0.3, 0.8, 1, 1, 0.8, 0.4, 0.7, 1, 0.9, 0.7, 0.4, 0.15, 0.05, 0.05, 0, 0, 0)


@dataclass(frozen=True)
class House:
    """What people do. Lengths in tokens and thinking in seconds are medians of log-normal distributions."""

    staff: int
    sessions: float = 2.0  # a person and day
    turns: int = 4  # questions in a session
    think_s: float = 45.0
    prompt: int = 250  # new tokens of a question: what was said before is in the prefix cache
    answer: int = 200
    longest: int = 1024

    def arrivals(self, chance: random.Random) -> list[float]:
        """Seconds of the day at which sessions begin."""
        hours = chance.choices(range(24), weights=DAY, k=round(self.staff * self.sessions))
        return sorted((hour + chance.random()) * HOUR for hour in hours)


@dataclass(eq=False, kw_only=True, slots=True)
class Question(Sequence):
    """One question on its way; times in seconds of the day."""

    person: str
    turns_left: int
    answer: int
    asked_s: float
    admitted_s: float = 0.0
    first_s: float = 0.0
    ended_s: float = 0.0
    ticket: Ticket | None = None
    told: int = 0  # tokens of the answer


@dataclass
class Engine:
    """One engine: its scheduler, and a clock that stands where its last step ended."""

    costs: Costs
    now: float = 0.0
    busy_s: dict[int, float] = field(default_factory=lambda: defaultdict(float))  # by hour of the day
    running: list[Question] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.scheduler = Scheduler(self.costs)

    def begin(self, question: Question, now: float) -> None:
        if not self.running:
            self.now = now  # it was idle until now
        self.running.append(question)

    def advance(self, until: float) -> list[Question]:
        """Run until the first answer has ended, or the first step past `until`; return the answers that ended."""
        ended: list[Question] = []
        while self.running and self.now < until and not ended:
            plan = self.scheduler.schedule(self.running, _take_slot)
            prefill = sum(plan.values()) - (decodes := sum(question.pending == 1 for question in plan))
            seconds = self.costs.decodes(decodes) + prefill * self.costs.row_s
            if prefill and not decodes:
                seconds += self.costs.decodes(1)  # the weights are read all the same
            steps = 1 if prefill else self._alike(seconds, min(until, self.now + SLICE_S))
            self.now += steps * seconds
            self.busy_s[int(self.now // HOUR)] += steps * seconds
            ended = [question for question, tokens in plan.items() if self._tell(question, tokens, steps)]
        self.running = [question for question in self.running if question not in ended]
        return ended

    def _alike(self, seconds: float, until: float) -> int:
        """How many steps of decodes alone follow one another with nothing in between."""
        shortest = min(question.answer - question.told for question in self.running)
        return max(1, min(shortest, math.ceil((until - self.now) / seconds)))

    def _tell(self, question: Question, tokens: int, steps: int) -> bool:
        """Book what a step did for a question; whether its answer has ended."""
        question.computed += tokens
        if question.pending:
            return False
        question.first_s = question.first_s or self.now
        question.told += steps
        question.tokens += [0] * steps
        question.computed = len(question.tokens) - 1
        return question.told >= question.answer


def _take_slot(question: Question) -> bool:
    question.slotted = True
    return True


@dataclass
class Day:
    """One day with so many engines behind one gate."""

    house: House
    engines: list[Engine]
    gate: Gate
    chance: random.Random
    events: list[tuple[float, int, Question]] = field(default_factory=list)  # questions that will be asked
    order: Iterator[int] = field(default_factory=count)
    by_ticket: dict[Ticket, Question] = field(default_factory=dict)
    answered: list[Question] = field(default_factory=list)
    refused: int = 0

    def run(self) -> None:
        for number, second in enumerate(self.house.arrivals(self.chance)):
            self._ask_later(second, f"person {number}", self.house.turns)
        while self.events or any(engine.running for engine in self.engines):
            until = self.events[0][0] if self.events else math.inf
            behind = [engine for engine in self.engines if engine.running and engine.now < until]
            if behind:
                engine = min(behind, key=lambda engine: engine.now)
                for question in engine.advance(until):
                    self._end(question, engine.now)
            else:
                _, _, question = heapq.heappop(self.events)
                self._ask(question, until)

    def _ask_later(self, second: float, person: str, turns_left: int) -> None:
        prompt, answer = self._length(self.house.prompt), self._length(self.house.answer)
        question = Question(
            tokens=[0] * prompt,
            arrived_at=second,
            person=person,
            turns_left=turns_left,
            answer=answer,
            asked_s=second,
        )
        heapq.heappush(self.events, (second, next(self.order), question))

    def _ask(self, question: Question, now: float) -> None:
        try:
            question.ticket = self.gate.enter(question.person, now)
        except (QueueFull, UserLimit) as full:
            self.refused += 1  # asked again when the person was told to
            again = now + max(1.0, full.retry_after_s or 0) * self.chance.uniform(1, 1.5)
            heapq.heappush(self.events, (again, next(self.order), question))
            return
        self.by_ticket[question.ticket] = question
        if question.ticket.admitted_at is not None:
            self._begin(question, now)

    def _begin(self, question: Question, now: float) -> None:
        question.admitted_s = now
        min(self.engines, key=lambda engine: len(engine.running)).begin(question, now)

    def _end(self, question: Question, now: float) -> None:
        assert question.ticket
        question.ended_s = now
        del self.by_ticket[question.ticket]
        self.gate.measure(now - question.admitted_s)
        for ticket in self.gate.leave(question.ticket, now):
            self._begin(self.by_ticket[ticket], now)
        self.answered.append(question)
        if question.turns_left > 1:
            thinks = self.chance.lognormvariate(math.log(self.house.think_s), 0.8)
            self._ask_later(now + thinks, question.person, question.turns_left - 1)

    def _length(self, median: int) -> int:
        return max(8, min(self.house.longest, round(self.chance.lognormvariate(math.log(median), 0.8))))


def measured(path: Path, faster: float) -> Costs:
    """What steps take, from the figures that `bench.step` wrote, of the first number of threads."""
    figures = next(iter(json.loads(path.read_text("utf-8"))["figures"].values()))
    if not isinstance(figures, dict):
        sys.exit(f"{path} is of an older `bench.step`, without numbers of threads; run `python -m bench.step` anew.")
    decodes = {int(name.split()[0]): whole / faster for name, (_, *rest) in figures.items() for whole in rest}
    costs = Costs.of(PIECE, PIECE * figures["prefill of a token"][0] / faster, decodes[1])
    costs.decode_s |= decodes
    return costs


def newest_steps() -> Path:
    found = sorted(RESULTS.glob("*-step.json"))
    if not found:
        sys.exit(
            "Nothing says what a step takes here; run `python -m bench.step` first, or name its JSON with --steps."
        )
    return found[-1]


def line_of(day: Day) -> str:
    waits = sorted(question.admitted_s - question.asked_s for question in day.answered)
    firsts = sorted(question.first_s - question.asked_s for question in day.answered)
    speeds = [question.told / (question.ended_s - question.first_s or math.inf) for question in day.answered]
    busiest = max(sum(engine.busy_s[hour] for engine in day.engines) for hour in range(48)) / HOUR / len(day.engines)
    figures = [
        _part(waits, 0.5),
        _part(waits, 0.95),
        _part(waits, 0.99),
        _part(firsts, 0.95),
        statistics.median(speeds),
    ]
    shown = " | ".join(f"{figure:.1f}" for figure in figures)
    return f"| {len(day.engines)} | {shown} | {day.refused} | {busiest:.0%} |"


def _part(ordered: list[float], part: float) -> float:
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--staff", type=int, default=10_000)
    parser.add_argument("--engines", default="40,64", help="how many, with commas between")
    parser.add_argument("--slots", type=int, default=16, help="requests that run at once in one engine")
    parser.add_argument(
        "--waiting", type=int, default=200, help="requests that may wait; more are refused, and come again"
    )
    parser.add_argument("--sessions", type=float, default=House.sessions, help="a person and day")
    parser.add_argument("--answer", type=int, default=House.answer, help="tokens, median")
    parser.add_argument("--steps", type=Path, help="figures of bench.step; by default the newest in bench/results")
    parser.add_argument(
        "--faster", type=float, default=1.0, help="divide measured step times by this: a guess, not a figure"
    )
    arguments = parser.parse_args()
    began, steps = datetime.now(UTC), arguments.steps or newest_steps()
    house = House(arguments.staff, sessions=arguments.sessions, answer=arguments.answer)
    lines = [
        "| engines | wait, median, s | wait, 95 % | wait, 99 % | first token, 95 % | tokens/s of an answer | refused "
        "| busy in the busiest hour |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for number in map(int, arguments.engines.split(",")):
        limits = Limits(number * arguments.slots, arguments.waiting, per_person=3)
        engines = [Engine(measured(steps, arguments.faster)) for _ in range(number)]
        day = Day(house, engines, Gate(limits), random.Random(0))
        day.run()
        lines.append(line_of(day))
        print(lines[-1], flush=True)
    assumed = f"{house}; {arguments.slots} slots an engine; steps of {steps.name}, {arguments.faster:g} times as fast"
    save(began, "\n".join([*lines, "", assumed]), {"lines": lines, "assumed": assumed})


if __name__ == "__main__":
    main()
