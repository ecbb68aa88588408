"""Places that several processes share: one text that says who runs and who waits, changed by one of them at a time.

Each change reads the text into a gate, lets the gate decide by its rules, and writes the gate down again. Every process
keeps `gate` as a copy of what was written last, for whoever looks: positions, expected waits and how full it is are the
house's. Times in the text are seconds of the database's clock, in the copy those of this process's monotonic clock.

Where the text is kept, and how its changes are heard of, is for the Paper to know. Lives on the event loop, but for the
changes themselves, which may run on any thread.
"""

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from loguru import logger

from engine.gate import Gate, Limits, Ticket
from engine.places import Places
from engine.types import new_id

Work = Callable[[Gate, float], object]
More = Callable[[dict[str, Any]], None]
Change = Callable[[str, float], str]  # from the text and the time to the text; may raise, and then changes nothing
Written = tuple[str, float]  # the text, and the time at which it was so


class Paper(Protocol):
    """Where the text is. `process` is what this process is called."""

    process: str

    def change(self, change: Change) -> "asyncio.Future[Written]": ...

    async def look(self) -> Written: ...


@dataclass(slots=True, eq=False)
class SharedTicket(Ticket):
    id: str = ""
    process: str = ""
    request: str = ""  # its id; a program's own, so two processes may have the same at once


class SharedPlaces(Places):
    def __init__(self, paper: Paper) -> None:
        super().__init__()
        self._paper = paper
        self._own: dict[str, SharedTicket] = {}  # by id, until they leave
        self._written: set[str] = set()  # those of them that were seen in the text
        self._version = 0
        self._looking: asyncio.Task[None] | None = None
        self._look_again = False

    async def enter(self, person: str | None, request: str = "") -> Ticket:
        ticket = SharedTicket(person, 0.0, id=new_id(), process=self._paper.process, request=request)
        self._own[ticket.id] = ticket

        def enter(gate: Gate, now: float) -> None:
            gate.make = partial(SharedTicket, id=ticket.id, process=ticket.process, request=request)
            gate.enter(person, now)

        try:
            self._take(await self._paper.change(self._changing(enter)))
        except BaseException:
            self.leave(ticket)  # it may have been written all the same
            raise
        return ticket

    def leave(self, ticket: Ticket) -> None:
        if ticket.left or not isinstance(ticket, SharedTicket):
            return
        ticket.left = True
        self._own.pop(ticket.id, None)
        self._written.discard(ticket.id)
        self._edit(lambda gate, now: _leave(gate, {ticket.id}, now))

    def measure(self, duration_s: float) -> None:
        self._edit(lambda gate, now: gate.measure(duration_s))

    def change(self, limits: Limits) -> None:
        self.gate.limits = limits
        self._edit(lambda gate, now: gate.change(limits, now))

    def hold(self, held: bool) -> None:
        """The whole house waits while one of its processes holds."""
        process = self._paper.process

        def hold(text: dict[str, Any]) -> None:
            text["holders"] = [*({*text["holders"]} - {process}), *([process] if held else [])]

        self._edit(lambda gate, now: None, hold)

    def move_to_front(self, ticket: Ticket) -> None:
        assert isinstance(ticket, SharedTicket)
        id = ticket.id

        def move(gate: Gate, now: float) -> None:
            for one in [one for one in gate.order() if _id(one) == id]:
                gate.move_to_front(one)

        self._edit(move)

    def own(self) -> tuple[int, int]:
        running = sum(ticket.admitted_at is not None for ticket in self._own.values())
        return running, len(self._own) - running

    # --- the other processes ---

    def by_process(self) -> dict[str, tuple[int, int]]:
        """How many requests run and wait, by process; those that have none are not in it."""
        running = Counter(_process(ticket) for ticket in self.gate.running)
        waiting = Counter(_process(ticket) for ticket in self.gate.order())
        return {process: (running[process], waiting[process]) for process in {*running, *waiting}}

    def positions(self) -> dict[str, int]:
        """Where requests stand among all that wait, by their ids; 0 is the next."""
        return {one.request: place for place, one in enumerate(self.gate.order()) if isinstance(one, SharedTicket)}

    def waiting_elsewhere(self, request: str) -> SharedTicket | None:
        """The place in the line of another process's request; None: it does not wait any more."""
        line = (one for one in self.gate.order() if isinstance(one, SharedTicket) and one.id not in self._own)
        return next((one for one in line if one.request == request), None)

    def changed(self) -> None:
        """Somebody has changed the text, or may have: look at it soon."""
        self._look_again = True
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="look at the places")

    def keep_only(self, processes: Collection[str]) -> None:
        """Take away the places of processes that are not among these: they are dead."""
        dead = set(self.by_process()) - {*processes}
        if dead or self.gate.held:

            def clear(gate: Gate, now: float) -> None:
                gone = {_id(one) for one in [*gate.running, *gate.order()] if _process(one) not in processes}
                _leave(gate, gone, now)

            def release(text: dict[str, Any]) -> None:
                text["holders"] = [holder for holder in text["holders"] if holder in processes]

            self._edit(clear, release)

    async def _look(self) -> None:
        while self._look_again:
            self._look_again = False
            try:
                self._take(await self._paper.look())
            except Exception as error:
                logger.warning("the places of the other processes cannot be read: {}", error)

    # --- the text ---

    def _edit(self, work: Work, more: More | None = None) -> None:
        """Change the text as soon as it can be; the copy follows."""
        try:
            writing = self._paper.change(self._changing(work, more))
        except Exception as error:  # the store is closed: whoever looks after the dead takes our places away
            logger.info("a change of the places is not written: {}", error)
            return
        writing.add_done_callback(self._written_down)

    def _written_down(self, writing: "asyncio.Future[Written]") -> None:
        if writing.cancelled():
            return
        if error := writing.exception():
            logger.error("a change of the places is not written: {!r}", error)
        else:
            self._take(writing.result())

    def _changing(self, work: Work, more: More | None = None) -> Change:
        limits, own_limits = self.gate.limits, dict(self.gate.own_limits)

        def change(text: str, now: float) -> str:
            read = _read(text)
            if more:
                more(read)
            gate = _gate(read, limits, own_limits)
            work(gate, now)
            gate.hold(bool(read["holders"]), now)
            return _write(gate, read)

        return change

    def _take(self, written: Written) -> None:
        """Make the copy what was written, unless something newer is known; tell who may run."""
        text, now = written
        read = _read(text)
        if read["version"] <= self._version:
            return
        self._version = read["version"]
        ahead_s = time.monotonic() - now
        new = _gate(read, self.gate.limits, self.gate.own_limits)
        admitted: list[Ticket] = []

        def known(ticket: Ticket) -> Ticket:
            """Our own ticket where it is one of ours; the times on this process's clock."""
            own = self._own.get(_id(ticket))
            if own is None:
                ticket.entered_at += ahead_s
                ticket.admitted_at = None if ticket.admitted_at is None else ticket.admitted_at + ahead_s
                return ticket
            self._written.add(own.id)
            if own.admitted_at is None and ticket.admitted_at is not None:
                own.admitted_at = ticket.admitted_at + ahead_s
                admitted.append(own)
            return own

        self.gate.running = {known(ticket) for ticket in new.running}
        self.gate.lines = {line: deque(map(known, tickets)) for line, tickets in new.lines.items()}
        self.gate.duration_s, self.gate.held = new.duration_s, new.held
        self._put_back({*map(_id, [*self.gate.running, *self.gate.order()])})
        self.let_in(admitted)

    def _put_back(self, there: set[str]) -> None:
        """Others took us for dead, and our places away; we live, and what runs goes on running."""
        lost = [self._own[id] for id in self._written - there]
        self._written -= {ticket.id for ticket in lost}
        if not lost:
            return

        def put_back(gate: Gate, now: float) -> None:
            for one in lost:
                ticket = replace(one, entered_at=now, admitted_at=None if one.admitted_at is None else now)
                if ticket.admitted_at is None:
                    gate.lines.setdefault(ticket.line, deque()).append(ticket)
                else:
                    gate.running.add(ticket)
            gate.change(gate.limits, now)

        self._edit(put_back)


def _leave(gate: Gate, ids: Collection[str], now: float) -> None:
    for ticket in [*gate.running, *gate.order()]:
        if _id(ticket) in ids:
            gate.leave(ticket, now)


def _id(ticket: Ticket) -> str:
    return ticket.id if isinstance(ticket, SharedTicket) else ""


def _process(ticket: Ticket) -> str:
    return ticket.process if isinstance(ticket, SharedTicket) else ""


def _read(text: str) -> dict[str, Any]:
    empty: dict[str, Any] = {"version": 0, "duration_s": None, "holders": [], "running": [], "lines": {}}
    return {**empty, **json.loads(text or "{}")}


def _gate(read: dict[str, Any], limits: Limits, own_limits: dict[str, int]) -> Gate:
    def ticket(told: list[Any]) -> SharedTicket:
        id, process, person, entered_at, admitted_at, *request = told  # which an older version did not write
        return SharedTicket(person, entered_at, admitted_at, id=id, process=process, request="".join(request))

    return Gate(
        limits,
        running=set(map(ticket, read["running"])),
        lines={line: deque(map(ticket, tickets)) for line, tickets in read["lines"].items()},
        own_limits=own_limits,
        duration_s=read["duration_s"],
        held=bool(read["holders"]),
    )


def _write(gate: Gate, read: dict[str, Any]) -> str:
    def told(ticket: Ticket) -> list[Any]:
        request = ticket.request if isinstance(ticket, SharedTicket) else ""
        return [_id(ticket), _process(ticket), ticket.person, ticket.entered_at, ticket.admitted_at, request]

    running = sorted(map(told, gate.running), key=lambda one: float(one[4]))
    lines = {line: list(map(told, tickets)) for line, tickets in gate.lines.items()}
    written = {"duration_s": gate.duration_s, "holders": read["holders"], "running": running, "lines": lines}
    return json.dumps({"version": read["version"] + 1, **written})
