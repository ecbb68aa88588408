"""The gate under a simulated clock: `now` is whatever a test says it is."""

import copy
import random
from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from engine.errors import QueueFull, UserLimit
from engine.gate import Gate, Limits, Ticket


def gate(concurrent: int = 1, waiting: int = 50, per_person: int = 50) -> Gate:
    return Gate(Limits(concurrent, waiting, per_person))


def served(gate: Gate) -> list[Ticket]:
    """Let every running request end, again and again; return whose turn it was each time."""
    tickets = []
    while gate.running:
        tickets += gate.leave(next(iter(gate.running)), now=0)
    return tickets


def people(tickets: Iterable[Ticket]) -> list[str | None]:
    return [ticket.person for ticket in tickets]


def test_the_first_runs_at_once_and_the_next_waits() -> None:
    line = gate()
    first, second = line.enter("ada", now=1), line.enter("bob", now=2)
    assert (first.admitted_at, second.admitted_at) == (1, None)
    assert (line.running, line.waiting, line.depth) == ({first}, 1, 2)
    assert line.leave(first, now=5) == [second]
    assert second.admitted_at == 5


def test_one_person_is_served_in_order_of_asking() -> None:
    line = gate()
    running, *others = [line.enter("ada", now=0) for _ in range(4)]
    assert list(line.order()) == others
    assert line.leave(running, now=1) == [others[0]]


def test_five_waiting_requests_of_one_person_do_not_delay_another() -> None:
    line = gate()
    for person in ["ada"] * 6 + ["bob", "cyd", "bob"]:
        line.enter(person, now=0)
    assert people(served(line)) == ["ada", "bob", "cyd", "ada", "bob", "ada", "ada", "ada"]


def test_asking_again_and_again_is_no_way_past_the_others() -> None:
    line = gate()
    running = line.enter("eve", now=0)
    line.enter("ada", now=0)
    line.enter("eve", now=0)
    assert people(line.leave(running, now=1)) == ["ada"]
    line.enter("bob", now=1)
    line.enter("eve", now=1)
    assert people(served(line)) == ["eve", "bob", "eve"]


def test_the_order_foretold_is_the_order_served() -> None:
    dice = random.Random(2)
    for _ in range(200):
        line = gate(concurrent=dice.randint(1, 4))
        for _ in range(dice.randint(1, 30)):
            line.enter(dice.choice("abcde"), now=0)
        assert list(line.order()) == served(line)


def test_requests_by_the_fixed_key_share_a_line_and_have_no_limit_of_their_own() -> None:
    line = gate(per_person=1)
    for _ in range(3):
        line.enter(None, now=0)
    line.enter("ada", now=0)
    assert people(served(line)) == [None, "ada", None]


def test_more_than_may_wait_are_refused_and_change_nothing() -> None:
    line = gate(concurrent=2, waiting=1)
    for person in "abc":
        line.enter(person, now=0)
    with pytest.raises(QueueFull):
        line.enter("d", now=0)
    assert (len(line.running), line.waiting) == (2, 1)


def test_with_no_waiting_places_the_free_ones_are_still_given() -> None:
    line = gate(concurrent=1, waiting=0)
    running = line.enter("ada", now=0)
    with pytest.raises(QueueFull):
        line.enter("bob", now=0)
    line.leave(running, now=1)
    assert line.enter("bob", now=1).admitted_at == 1


def test_one_person_has_a_limit_over_running_and_waiting() -> None:
    line = gate(concurrent=1, per_person=2)
    running, waiting = line.enter("ada", now=0), line.enter("ada", now=0)
    with pytest.raises(UserLimit, match="2"):
        line.enter("ada", now=0)
    line.leave(waiting, now=1)
    line.enter("ada", now=1)
    line.leave(running, now=2)
    line.enter("ada", now=2)
    assert line.depth == 2


def test_a_refusal_says_when_to_come_again() -> None:
    line = gate(concurrent=1, waiting=0, per_person=1)
    line.enter("ada", now=0)
    with pytest.raises(QueueFull) as unmeasured:
        line.enter("bob", now=0)
    assert unmeasured.value.retry_after_s == 1
    line.measure(20)
    with pytest.raises(QueueFull) as full:
        line.enter("bob", now=5)
    with pytest.raises(UserLimit) as own:
        line.enter("ada", now=5)
    assert full.value.retry_after_s == own.value.retry_after_s == 15


def test_leaving_the_line_lets_nobody_in_and_a_second_time_does_nothing() -> None:
    line = gate()
    running = line.enter("ada", now=0)
    waiting = line.enter("bob", now=0)
    assert line.leave(waiting, now=1) == []
    assert line.depth == 1
    assert line.leave(waiting, now=1) == []
    line.leave(running, now=2)
    assert line.leave(running, now=2) == []
    assert line.depth == 0


def test_higher_limits_let_people_in_and_lower_ones_put_nobody_out() -> None:
    line = gate(concurrent=1)
    first, second, third = [line.enter(person, now=0) for person in "abc"]
    assert line.change(Limits(3, 50, 50), now=4) == [second, third]
    assert line.change(Limits(1, 0, 1), now=5) == []
    assert line.running == {first, second, third}
    line.leave(first, now=6)
    line.leave(second, now=6)
    with pytest.raises(QueueFull):
        line.enter("d", now=6)
    line.leave(third, now=7)
    fourth = line.enter("d", now=7)
    assert line.running == {fourth}


def test_a_ticket_moved_to_the_front_is_next_and_the_turns_go_on_behind_it() -> None:
    line = gate()
    _, a1, b1, a2, b2 = [line.enter(person, now=0) for person in "xabab"]
    line.move_to_front(b2)
    assert list(line.order()) == [b2, a1, b1, a2]
    running = next(iter(line.running))
    assert line.leave(running, now=1) == [b2]


def test_moving_a_ticket_that_waits_no_more_changes_nothing() -> None:
    line = gate()
    running, waiting = line.enter("ada", now=0), line.enter("bob", now=0)
    line.move_to_front(running)
    line.leave(running, now=1)
    line.move_to_front(running)
    assert line.running == {waiting}
    assert line.waiting == 0


def wait_of(line: Gate, ticket: Ticket, now: float) -> float | None:
    return dict(zip(line.order(), line.waits(now), strict=False))[ticket]


def test_nothing_is_foretold_before_anything_was_measured() -> None:
    line = gate()
    line.enter("ada", now=0)
    assert wait_of(line, line.enter("bob", now=0), now=0) is None


def test_the_expected_wait_is_what_a_simulated_run_takes() -> None:
    """Every request runs 10 s: the forecast made at the start is then exact, for each of them."""
    line, duration = gate(concurrent=3), 10.0
    line.measure(duration)
    tickets = [line.enter(person, now=start) for start, person in enumerate("aabacabbdd")]
    asked = float(len(tickets))
    foretold = dict(zip(line.order(), line.waits(asked), strict=False))
    while line.running:
        ending = min(line.running, key=lambda ticket: ticket.admitted_at or 0.0)
        line.leave(ending, now=(ending.admitted_at or 0.0) + duration)
    assert {t: (t.admitted_at or 0.0) - asked for t in foretold} == pytest.approx(foretold)


def test_more_running_than_the_lowered_limit_lengthens_the_wait() -> None:
    line = gate(concurrent=3)
    line.measure(10)
    for start in range(3):
        line.enter("ada", now=start)
    waiting = line.enter("bob", now=3)
    assert wait_of(line, waiting, now=3) == 7
    line.change(Limits(1, 50, 50), now=3)
    assert wait_of(line, waiting, now=3) == 9  # the last of the three has to end


def test_the_duration_follows_what_is_measured() -> None:
    line = gate()
    line.measure(10)
    assert line.duration_s == 10
    for _ in range(50):
        line.measure(30)
    assert line.duration_s == pytest.approx(30, abs=0.01)


PEOPLE = st.sampled_from(["ada", "bob", "cyd", None])
SMALL = st.integers(0, 4)


class AnyHistory(RuleBasedStateMachine):
    """Whatever people and administrators do, in whatever order."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = gate(concurrent=2, waiting=3, per_person=3)
        self.inside: list[Ticket] = []
        self.now = 0.0

    @rule(person=PEOPLE)
    def enter(self, person: str | None) -> None:
        before = self.gate.depth
        self.now += 1
        try:
            self.inside.append(self.gate.enter(person, self.now))
        except QueueFull:
            assert len(self.gate.running) >= self.gate.limits.concurrent
            assert self.gate.waiting >= self.gate.limits.waiting
        except UserLimit:
            assert sum(t.person == person for t in self.inside) >= self.gate.limits.per_person
        assert self.gate.depth == len(self.inside) >= before

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        if self.inside:
            ticket = self.inside.pop(data.draw(st.integers(0, len(self.inside) - 1)))
            waiting = set(self.gate.order())
            self.now += 1
            admitted = self.gate.leave(ticket, self.now)
            assert set(admitted) <= waiting - {ticket}
            assert self.gate.leave(ticket, self.now) == []

    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        if self.inside:
            ticket = data.draw(st.sampled_from(self.inside))
            waits = ticket not in self.gate.running
            self.gate.move_to_front(ticket)
            assert not waits or next(self.gate.order()) is ticket

    @rule(concurrent=st.integers(1, 4), waiting=SMALL, per_person=st.integers(1, 4))
    def change(self, concurrent: int, waiting: int, per_person: int) -> None:
        running = set(self.gate.running)
        admitted = self.gate.change(Limits(concurrent, waiting, per_person), self.now)
        assert self.gate.running == running | set(admitted)

    @rule(duration_s=st.floats(0, 100))
    def measure(self, duration_s: float) -> None:
        self.gate.measure(duration_s)

    @invariant()
    def everybody_stands_in_exactly_one_place(self) -> None:
        waiting = list(self.gate.order())
        assert len(waiting) == len(set(waiting)) == self.gate.waiting
        assert set(waiting) | self.gate.running == set(self.inside)
        assert not set(waiting) & self.gate.running

    @invariant()
    def nobody_waits_beside_a_free_place(self) -> None:
        assert not self.gate.waiting or len(self.gate.running) >= self.gate.limits.concurrent

    @invariant()
    def the_order_foretold_is_the_order_served(self) -> None:
        future = copy.deepcopy(self.gate)
        foretold = list(future.order())
        assert foretold == served(future)

    @invariant()
    def waits_never_shrink_along_the_line(self) -> None:
        waits = [wait for _, wait in zip(self.gate.order(), self.gate.waits(self.now), strict=False)]
        known = [wait for wait in waits if wait is not None]
        assert known == sorted(known)
        assert len(known) in (0, len(waits))


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, database=None)


def test_a_limit_of_ones_own_holds_instead_of_everybodys() -> None:
    line = gate(per_person=1)
    line.own_limits = {"ada": 2, "eve": 0}
    tickets = [line.enter("ada", now=0), line.enter("ada", now=0), line.enter("bob", now=0)]
    for person, most in (("ada", 2), ("bob", 1), ("eve", 0)):
        with pytest.raises(UserLimit, match=f"may have {most} running"):
            line.enter(person, now=0)
    assert [line.held_by(person) for person in ("ada", "bob", "eve")] == [2, 1, 0]
    line.own_limits = {}
    assert not any(ticket.left for ticket in tickets)
    with pytest.raises(UserLimit, match="may have 1 running"):
        line.enter("ada", now=0)
