"""A conversation's exchanges, which form a tree, as the turns that a page shows.

An exchange's parent is the exchange before it; those with the same parent are versions of one turn. Pure functions
over records.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

from engine.types import Exchange, Status
from ui.components.thread import Note, Turn
from ui.i18n import Language

Tree = Mapping[str, Exchange]  # by id, oldest first


def branch(tree: Tree, head_id: str | None) -> list[Exchange]:
    """The exchanges from the first one to the head; to the newest one where the head is not known."""
    at = tree.get(head_id or "") or next(reversed(list(tree.values())), None)
    path: list[Exchange] = []
    while at and at not in path:
        path.append(at)
        at = tree.get(at.parent_id or "")
    return path[::-1]


def versions(tree: Tree, exchange: Exchange) -> list[str]:
    """The ids of this exchange and of the others with its parent, oldest first."""
    return [other.id for other in tree.values() if other.parent_id == exchange.parent_id]


def newest_under(tree: Tree, exchange: Exchange) -> Exchange:
    """The end of the branch that goes on from this exchange, by its newest followers."""
    while children := [other for other in tree.values() if other.parent_id == exchange.id]:
        exchange = children[-1]
    return exchange


def answered(path: Iterable[Exchange]) -> list[Exchange]:
    """Those that the model is told of: without an answer, a question would stand before a question."""
    return [exchange for exchange in path if exchange.answer.strip()]


def first_read(path: list[Exchange]) -> str:
    """The id of the first exchange that was read for the newest one; "" when all were."""
    if not path:
        return ""
    told = sum(message.role == "user" for message in path[-1].messages) - 1
    candidates = answered(path[:-1])
    if told >= len(candidates):
        return ""
    return candidates[-told].id if told else path[-1].id


def turn(exchange: Exchange, tree: Tree, say: Language, html: str | None) -> Turn:
    """An exchange with its answer as HTML (None: the browser has it)."""
    return Turn(
        id=exchange.id,
        question=exchange.prompt,
        status=exchange.status.value,
        final=exchange.status.final,
        begun=bool(exchange.answer),
        html=html,
        pieces="",
        tail="",
        seq=0,
        source=exchange.answer if exchange.status.final else "",
        versions=versions(tree, exchange),
        position=None,
        ready_at=None,
        note=note(exchange, say),
        details=details(exchange, say),
    )


def note(exchange: Exchange, say: Language) -> Note | None:
    """What to say under an answer; None for one that came to its own end."""
    match exchange.status:
        case Status.DONE if exchange.finish_reason == "length":
            return Note(kind="soft", text=say("The answer reached its greatest length."), retry=False)
        case Status.DONE if not exchange.answer.strip():
            return Note(kind="soft", text=say("The model gave no answer."), retry=True)
        case Status.STOPPED:
            return Note(kind="soft", text=say("You stopped this answer."), retry=False)
        case Status.CANCELLED if exchange.started_at:
            return Note(kind="warn", text=say("An administrator ended this answer."), retry=True)
        case Status.CANCELLED:
            return Note(kind="soft", text=say("This question left the line before it was answered."), retry=True)
        case Status.DISCONNECTED:
            return Note(kind="warn", text=say("The answer ended because no page showed it any more."), retry=True)
        case Status.TIMED_OUT:
            return Note(kind="warn", text=say("The answer took too long and was ended."), retry=True)
        case Status.INTERRUPTED:
            return Note(kind="warn", text=say("The server went down before the answer was finished."), retry=True)
        case Status.FAILED:
            text = say("Something went wrong while this was answered. It is not your fault.")
            return Note(kind="bad", text=text, retry=True)
    return None


def details(exchange: Exchange, say: Language) -> list[tuple[str, str]]:
    """The figures of an answer, for people: how long it waited, how fast it was, and who made it."""
    rows = []
    started, first, finished = exchange.started_at, exchange.first_token_at, exchange.finished_at
    if started:
        rows.append((say("Waited"), say("{n} s", n=say.number(_seconds(exchange.queued_at, started), 1))))
    if started and first:
        rows.append((say("First token after"), say("{n} s", n=say.number(_seconds(started, first), 1))))
    if exchange.completion_tokens:
        rows.append((say("Tokens"), say.number(exchange.completion_tokens)))
    if first and finished and exchange.completion_tokens > 1 and finished > first:
        speed = (exchange.completion_tokens - 1) / _seconds(first, finished)
        rows.append((say("Tokens per second"), say.number(speed, 1)))
    if ended := ending(exchange, say):
        rows.append((say("Ended"), ended))
    if exchange.finished_at:
        rows.append((say("Model"), " · ".join(filter(None, [exchange.model, exchange.quantization]))))
    return rows


def ending(exchange: Exchange, say: Language) -> str:
    """Why an answer ends where it does: the finish reason in a few words; "" where a note says it already."""
    if exchange.status is Status.DONE:
        return say("at its greatest length") if exchange.finish_reason == "length" else say("by itself")
    return say("stopped by you") if exchange.status is Status.STOPPED else ""


def _seconds(earlier: datetime, later: datetime) -> float:
    return (later - earlier).total_seconds()
