"""A conversation's exchanges, which form a tree, as the turns that a page shows.

An exchange's parent is the exchange before it; those with the same parent are versions of one turn. Pure functions
over records.
"""

from collections.abc import Mapping
from datetime import datetime

from engine.errors import BUSY_ELSEWHERE
from engine.types import Exchange, Status
from ui.components.attachments import split_files
from ui.components.thread import Note, Turn
from ui.engine_words import in_words
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


def ends(path: list[Exchange]) -> list[Exchange]:
    """The last exchange of each turn: an answer that was cut off and gone on with is one turn."""
    followers = [*path[1:], None]
    return [one for one, next in zip(path, followers, strict=False) if not (next and next.opening)]


def beginning(tree: Tree, exchange: Exchange) -> Exchange:
    """The first exchange of a turn; the others go on with its answer."""
    while exchange.opening and (before := tree.get(exchange.parent_id or "")):
        exchange = before
    return exchange


def versions(tree: Tree, exchange: Exchange) -> list[str]:
    """The ids of the answers to the same question, oldest first; this one stands for its turn's beginning."""
    first = beginning(tree, exchange)
    beside = [other for other in _beside(tree, first) if other.prompt == first.prompt]
    return [exchange.id if other is first else other.id for other in beside]


def questions(tree: Tree, exchange: Exchange) -> list[str]:
    """The newest answer to each of the questions that were asked at this place, this one for its own."""
    first = beginning(tree, exchange)
    newest = {other.prompt: other.id for other in _beside(tree, first)}
    return list((newest | {first.prompt: exchange.id}).values())


def _beside(tree: Tree, first: Exchange) -> list[Exchange]:
    """The exchange and all others that begin a turn at its place, oldest first."""
    return [
        other for other in tree.values() if other is first or (other.parent_id == first.parent_id and not other.opening)
    ]


def newest_under(tree: Tree, exchange: Exchange) -> Exchange:
    """The end of the branch that goes on from this exchange, by its newest followers."""
    while children := [other for other in tree.values() if other.parent_id == exchange.id]:
        exchange = children[-1]
    return exchange


def neighbour(tree: Tree, exchange: Exchange) -> str | None:
    """What to show instead of a turn that is removed: another version of it, else the turn before it."""
    first = beginning(tree, exchange)
    beside = _beside(tree, first)
    others = beside[: beside.index(first)][::-1] + beside[beside.index(first) + 1 :]
    alike = [other for other in others if other.prompt == first.prompt] or others
    return newest_under(tree, alike[0]).id if alike else first.parent_id


def answered(path: list[Exchange]) -> list[Exchange]:
    """Those that the model is told of: without an answer, a question would stand before a question."""
    return [exchange for exchange in ends(path) if exchange.whole_answer.strip()]


def first_read(path: list[Exchange]) -> str:
    """The id of the first exchange that was read for the newest one; "" when all were."""
    turns = ends(path)
    if not turns or turns[-1].source == "import":
        return ""
    told = sum(message.role == "user" for message in turns[-1].messages) - 1
    candidates = answered(turns[:-1])
    if told >= len(candidates):
        return ""
    return candidates[-told].id if told else turns[-1].id


def turn(exchange: Exchange, tree: Tree, say: Language, html: str | None) -> Turn:
    """An exchange with its answer as HTML (None: the browser has it)."""
    asked, files = split_files(exchange.prompt)
    return Turn(
        id=exchange.id,
        goes_on=exchange.parent_id or "" if exchange.opening else "",
        question=exchange.prompt,
        asked=asked,
        files=[{"name": file.name, "text": file.text} for file in files],
        status=exchange.status.value,
        final=exchange.status.final,
        begun=bool(exchange.whole_answer),
        html=html,
        pieces="",
        tail="",
        seq=0,
        source=exchange.whole_answer if exchange.status.final else "",
        versions=versions(tree, exchange),
        questions=questions(tree, exchange),
        position=None,
        ready_at=None,
        note=note(exchange, say),
        details=details(exchange, say),
    )


def note(exchange: Exchange, say: Language) -> Note | None:
    """What to say under an answer; None for one that came to its own end."""
    cut_off = exchange.whole_answer.strip() != ""

    def told(kind: str, text: str, *, retry: bool) -> Note:
        return Note(kind=kind, text=text, retry=retry, go_on=cut_off)

    match exchange.status:
        case Status.DONE if exchange.finish_reason == "length":
            return told("soft", say("The answer reached its greatest length."), retry=False)
        case Status.DONE if not cut_off:
            return told("soft", say("The model gave no answer."), retry=True)
        case Status.STOPPED:
            return told("soft", say("You stopped this answer."), retry=False)
        case Status.CANCELLED if exchange.started_at:
            return told("warn", say("An administrator ended this answer."), retry=True)
        case Status.CANCELLED:
            return told("soft", say("This question left the line before it was answered."), retry=True)
        case Status.DISCONNECTED:
            return told("warn", say("The answer ended because no page showed it any more."), retry=True)
        case Status.TIMED_OUT:
            return told("warn", say("The answer took too long and was ended."), retry=True)
        case Status.INTERRUPTED if exchange.error:  # why, in the engine's words
            return told("warn", in_words(say, exchange.error), retry=True)
        case Status.INTERRUPTED:
            return told("warn", say("The server went down before the answer was finished."), retry=True)
        case Status.FAILED if exchange.error == BUSY_ELSEWHERE:
            return told("warn", say("All places are taken at the moment. Please try again in a moment."), retry=True)
        case Status.FAILED:
            text = say("Something went wrong while this was answered. It is not your fault.")
            return told("bad", text, retry=True)
    return None


def details(exchange: Exchange, say: Language) -> list[tuple[str, str]]:
    """The figures of an answer, for people: how long it waited, how fast it was, and who made it."""
    rows = []
    started, first, finished = exchange.started_at, exchange.first_token_at, exchange.finished_at
    if started:
        rows.append((say("Waited"), say("{n} s", n=say.number(_seconds(exchange.queued_at, started), 1))))
    if started and first:
        rows.append((say("First token after"), say("{n} s", n=say.number(_seconds(started, first), 1))))
    if exchange.prompt_tokens:
        read, cached = say.number(exchange.prompt_tokens), say.number(exchange.cached_tokens)
        told = say("{n} ({cached} cached)", n=read, cached=cached) if exchange.cached_tokens else read
        rows.append((say("Tokens of the prompt"), told))
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
