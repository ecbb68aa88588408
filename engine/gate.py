"""Who runs, who waits, and in which order.

At most `concurrent` requests run and at most `waiting` wait; more are refused at once. People take turns: each has a
line of their own, and a place that becomes free goes to the person whose turn it is, so that five waiting requests of
one person never stand before the single one of another.

Pure policy: no I/O, no tensors, no clock of its own (`now` is passed in, in seconds of any monotonic clock), and not
thread-safe (the event loop owns it). Tested with a simulated clock in tests/engine/test_gate.py.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from engine.errors import QueueFull, UserLimit

SMOOTHING = 0.2  # weight of the newest measurement in the moving average of a request's duration


@dataclass(frozen=True, slots=True)
class Limits:
    concurrent: int
    waiting: int
    per_person: int


@dataclass(slots=True, eq=False)
class Ticket:
    """One request's place, from `enter` to `leave`."""

    person: str | None
    entered_at: float
    admitted_at: float | None = None
    left: bool = False

    @property
    def line(self) -> str:
        """Whose turn it counts as; requests by the operator's fixed key share one line."""
        return self.person or ""


@dataclass(slots=True)
class Gate:
    limits: Limits
    running: set[Ticket] = field(default_factory=set)
    lines: dict[str, deque[Ticket]] = field(default_factory=dict)  # by person, the next turn first
    own_limits: dict[str, int] = field(default_factory=dict)  # of persons for whom per_person does not hold
    duration_s: float | None = None  # moving average of how long a request runs; None until one has ended
    held: bool = False  # nobody is let in: who comes waits
    make: Callable[[str | None, float], Ticket] = Ticket  # from who comes, and when

    @property
    def waiting(self) -> int:
        return sum(map(len, self.lines.values()))

    @property
    def depth(self) -> int:
        return len(self.running) + self.waiting

    def limit_of(self, person: str) -> int:
        return self.own_limits.get(person, self.limits.per_person)

    def held_by(self, person: str) -> int:
        """How many requests of this person run and wait."""
        return sum(t.person == person for t in self.running) + len(self.lines.get(person, ()))

    def check(self, person: str | None, now: float) -> None:
        """Raise QueueFull or UserLimit if this person cannot enter now."""
        if person is not None and self.held_by(person) >= (most := self.limit_of(person)):
            raise UserLimit(
                f"One person may have {most} running and waiting at once; wait until one has ended.",
                retry_after_s=next(self.waits(now)) or 1,
            )
        if (self.held or len(self.running) >= self.limits.concurrent) and self.waiting >= self.limits.waiting:
            raise QueueFull(
                "Every place is taken, running and waiting; try again later.",
                retry_after_s=next(self.waits(now)) or 1,
            )

    def enter(self, person: str | None, now: float) -> Ticket:
        """Take a place, running if one is free, else waiting. Raises as `check`."""
        self.check(person, now)
        ticket = self.make(person, now)
        self.lines.setdefault(ticket.line, deque()).append(ticket)
        self._admit(now)
        return ticket

    def leave(self, ticket: Ticket, now: float) -> list[Ticket]:
        """Give the place back, from wherever the ticket stands; return who may run now. A second call does nothing."""
        if ticket.left:
            return []
        ticket.left = True
        if ticket in self.running:
            self.running.remove(ticket)
        else:
            self._take_from_line(ticket)
        return self._admit(now)

    def measure(self, duration_s: float) -> None:
        """Learn how long a request ran that came to its own end."""
        before = self.duration_s if self.duration_s is not None else duration_s
        self.duration_s = before + SMOOTHING * (duration_s - before)

    def change(self, limits: Limits, now: float) -> list[Ticket]:
        """Set other limits; return who may run now. Whoever is inside stays inside."""
        self.limits = limits
        return self._admit(now)

    def hold(self, held: bool, now: float) -> list[Ticket]:
        """Let nobody in, or everybody as before; return who may run now. Whoever runs goes on running."""
        self.held = held
        return self._admit(now)

    def move_to_front(self, ticket: Ticket) -> None:
        """Make this waiting ticket the next to run; one that runs already, or has left, stays as it is."""
        if ticket.left or ticket in self.running:
            return
        line = self.lines[ticket.line]
        line.remove(ticket)
        line.appendleft(ticket)
        self.lines = {ticket.line: self.lines.pop(ticket.line), **self.lines}

    def order(self) -> Iterator[Ticket]:
        """The waiting tickets as they will be served: everybody's first, then everybody's second, ..."""
        rounds = [list(line) for line in self.lines.values()]
        for turn in range(max(map(len, rounds), default=0)):
            yield from (line[turn] for line in rounds if turn < len(line))

    def waits(self, now: float) -> Iterator[float | None]:
        """Seconds until the first in `order` runs, the second, and so on without end; None while nobody can know.

        Plays the queue forward: each place becomes free when its request has run for the mean duration.
        """
        duration = self.duration_s
        while duration is None or self.held:
            yield None
        free_at = sorted(max(0.0, duration - (now - (t.admitted_at or 0.0))) for t in self.running)
        # After the limit was lowered more run than may: the first of them to end make room for nobody.
        free_at = [0.0] * (self.limits.concurrent - len(free_at)) + free_at[-self.limits.concurrent :]
        while True:
            yield free_at[0]
            heapq.heapreplace(free_at, free_at[0] + duration)

    def _admit(self, now: float) -> list[Ticket]:
        admitted = []
        while self.lines and not self.held and len(self.running) < self.limits.concurrent:
            ticket = next(iter(self.lines.values()))[0]
            self._take_from_line(ticket)
            if ticket.line in self.lines:  # this person has had a turn: behind everybody else
                self.lines[ticket.line] = self.lines.pop(ticket.line)
            ticket.admitted_at = now
            self.running.add(ticket)
            admitted.append(ticket)
        return admitted

    def _take_from_line(self, ticket: Ticket) -> None:
        line = self.lines[ticket.line]
        line.remove(ticket)
        if not line:
            del self.lines[ticket.line]
