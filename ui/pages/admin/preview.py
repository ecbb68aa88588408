"""What other limits would change, and for whom: said before they are set. Pure functions over the gate as it stands."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

from engine.gate import Gate, Limits, Ticket
from ui.i18n import Language
from ui.limits import LiveLimits

NAMED = 5  # people that are named; more are counted

Names = Mapping[str, str]  # of accounts, by id


def preview(say: Language, gate: Gate, before: LiveLimits, after: LiveLimits, names: Names, now_s: float) -> list[str]:
    """Sentences in the reader's language; `now_s` is time.monotonic()."""
    if before == after:
        return [say("Nothing would change.")]
    said = [
        *_starting(say, gate, after, names),
        *_queue(say, gate, after),
        *_over_their_limit(say, gate, after, names),
        *_waits(say, gate, after, now_s),
    ]
    if before.max_new_tokens != after.max_new_tokens:
        limit = say.number(after.max_new_tokens)
        said.append(say("New answers have at most {n} tokens; those that run keep their limit.", n=limit))
    return said or [say("It would change nothing for those who are here now.")]


def _starting(say: Language, gate: Gate, after: LiveLimits, names: Names) -> list[str]:
    free = after.concurrent - len(gate.running)
    if free < 0:
        return [
            say("{n} more run than may then: nobody is stopped, and the next starts when they have ended.", n=-free)
        ]
    starting = [_name(say, ticket, names) for ticket in islice(gate.order(), free)]
    return [say("Starts at once: {people}.", people=_listed(say, starting))] if starting else []


def _queue(say: Language, gate: Gate, after: LiveLimits) -> list[str]:
    left = max(0, gate.waiting - max(0, after.concurrent - len(gate.running)))
    full = left >= after.waiting and len(gate.running) + gate.waiting >= after.concurrent
    return [say("The queue is full then: new requests are refused until one has started.")] if full else []


def _over_their_limit(say: Language, gate: Gate, after: LiveLimits, names: Names) -> list[str]:
    people = {ticket.person for ticket in [*gate.running, *gate.order()] if ticket.person}
    held = {person: gate.held_by(person) for person in people if person not in gate.own_limits}
    full = sorted(names.get(person, "…") for person, count in held.items() if count >= after.per_person)
    return [say("Must wait before asking more: {people}.", people=_listed(say, full))] if full else []


def _waits(say: Language, gate: Gate, after: LiveLimits, now_s: float) -> list[str]:
    """How long the last in line waits, before and after."""
    if not gate.waiting:
        return []
    other = replace(gate, limits=Limits(after.concurrent, after.waiting, after.per_person))
    last = gate.waiting - 1
    was, becomes = (next(islice(each.waits(now_s), last, None)) for each in (gate, other))
    if was is None or becomes is None or round(was) == round(becomes):
        return []
    return [
        say("The last in line waits about {after} instead of {before}.", after=say.span(becomes), before=say.span(was))
    ]


def _name(say: Language, ticket: Ticket, names: Names) -> str:
    return names.get(ticket.person, "…") if ticket.person else say("fixed key")


def _listed(say: Language, people: list[str]) -> str:
    more = len(people) - NAMED
    listed = say(", ").join(people[:NAMED])
    return say("{people} and {n} more", people=listed, n=more) if more > 0 else listed
