"""Where requests get their places: the gate of this process, which has all of them.

    ticket = await places.enter(person)       raises QueueFull or UserLimit
    places.leave(ticket)

Several processes before one engine share their places instead: engine/shared_places.py. Whoever may run now is told to
`let_in`. Lives on the event loop alone.
"""

import time
from collections.abc import Callable

from engine.gate import Gate, Limits, Ticket


class Places:
    def __init__(self) -> None:
        self.gate = Gate(Limits(1, 0, 1))  # the service sets its own
        self.let_in: Callable[[list[Ticket]], None] = lambda admitted: None  # told whenever anything has changed

    async def enter(self, person: str | None, request: str = "") -> Ticket:
        """Take a place, running if one is free, else waiting; `request` is its id. Raises QueueFull or UserLimit."""
        return self.gate.enter(person, time.monotonic())

    def leave(self, ticket: Ticket) -> None:
        """Give the place back. A second call does nothing."""
        self.let_in(self.gate.leave(ticket, time.monotonic()))

    def measure(self, duration_s: float) -> None:
        """Learn how long a request ran that came to its own end."""
        self.gate.measure(duration_s)

    def change(self, limits: Limits) -> None:
        """Set other limits. Whoever is inside stays inside."""
        self.let_in(self.gate.change(limits, time.monotonic()))

    def hold(self, held: bool) -> None:
        """Let nobody in, or everybody as before."""
        self.let_in(self.gate.hold(held, time.monotonic()))

    def move_to_front(self, ticket: Ticket) -> None:
        self.gate.move_to_front(ticket)
        self.let_in([])

    def own(self) -> tuple[int, int]:
        """How many of this process's requests run, and how many wait."""
        return len(self.gate.running), self.gate.waiting
