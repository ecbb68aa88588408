"""What reviewers do with the opened exchange, as an element below it: labels, notes, correction, assigning, done, and
running it again.

Knows the component's protocol and nothing of the store. What the browser sends is checked by whoever handles it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from nicegui.element import Element

from engine.types import Exchange
from ui.components.feedback import reasons
from ui.components.review.facts import status_name, summary
from ui.components.review.inbox import Handler, Row, checked
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import Feedback, Hold, HoldKind, Review

Render = Callable[[str], str]
Did = Literal[
    "label", "unlabel", "note", "unnote", "correct", "assign", "done", "beside", "rerun", "stop", "hold", "release"
]


class NoteView(TypedDict):
    id: str
    who: str
    at: str  # ISO 8601
    text: str
    own: bool  # may be taken back


class Rerun(TypedDict):
    """One time that the exchange was run again. `id` is the new exchange's."""

    id: str
    who: str
    values: str  # the values that it ran with
    summary: list[str]
    status: str
    statusName: str
    final: bool
    answer: str  # sanitised HTML of a final one
    text: str  # as far as it has come
    error: str


class HoldView(TypedDict):
    kind: str
    by: str
    at: str  # ISO 8601
    reason: str


class WorkView(TypedDict):
    id: str
    feedback: list[str]  # what the person thought of the answer
    labels: list[str]
    notes: list[NoteView]
    correction: str
    assignee: str  # user id
    done: str  # by whom
    answer: str  # as logged: where a correction begins
    logged: str  # the same as sanitised HTML
    final: bool
    sampling: dict[str, str]
    held: list[HoldView]
    holdable: list[str]  # kinds that this reader may set
    reruns: list[Rerun]


class Work(Element, component="work.js"):
    def __init__(self, say: Language, reviewers: Mapping[str, str], handlers: Mapping[Did, Handler]) -> None:
        """`reviewers` are names by user id."""
        super().__init__()
        self.props["texts"] = texts(say)
        self.props["tag"] = say.tag
        self.props["reviewers"] = [{"id": id, "name": name} for id, name in reviewers.items()]
        for name, handler in handlers.items():
            self.on(name, checked(handler))

    def show(self, view: WorkView, suggestions: Sequence[str]) -> None:
        """`suggestions` are the labels in use."""
        self.run_method("show", view, list(suggestions))

    def trouble(self, sentence: str) -> None:
        self.run_method("trouble", sentence)

    def show_beside(self, id: str, count: str, rows: Sequence[Row]) -> None:
        self.run_method("showBeside", id, count, list(rows))

    def show_rerun(self, of: str, rerun: Rerun) -> None:
        """A new one, or how one goes on."""
        self.run_method("showRerun", of, rerun)


def feedback_lines(feedback: "Feedback | None", say: Language) -> list[str]:
    if feedback is None:
        return []
    thumb = say("Thumbs up") if feedback.rating == 1 else say("Thumbs down")
    reason = reasons(feedback.rating, say).get(feedback.reason, "")
    return [part for part in (thumb, reason, feedback.comment) if part]


def sampling_fields(exchange: Exchange) -> dict[str, str]:
    """The values that may be changed for another run, as the form shows them."""
    sampling = exchange.sampling
    return {
        "seed": "" if sampling.seed is None else str(sampling.seed),
        "temperature": f"{sampling.temperature:g}",
        "top_p": f"{sampling.top_p:g}",
        "top_k": str(sampling.top_k),
        "repetition_penalty": f"{sampling.repetition_penalty:g}",
        "max_tokens": "" if sampling.max_tokens is None else str(sampling.max_tokens),
    }


def rerun(exchange: Exchange, who: str, say: Language, render: Render) -> Rerun:
    """Renders Markdown: call it off the event loop."""
    final = exchange.status.final
    values = ", ".join(f"{name} {value}" for name, value in sampling_fields(exchange).items() if value)
    return Rerun(
        id=exchange.id,
        who=who,
        values=values,
        summary=summary(exchange, say) if final else [],
        status=exchange.status.value,
        statusName=status_name(exchange.status, say),
        final=final,
        answer=render(exchange.answer) if final and exchange.answer else "",
        text=exchange.whole_answer,
        error=exchange.error or "",
    )


def hold_views(holds: "Sequence[Hold]", targets: Mapping["HoldKind", str]) -> list[HoldView]:
    """Those on one of the targets, which are ids by kind."""
    on = [hold for hold in holds if targets.get(hold.kind) == hold.target]
    return [HoldView(kind=hold.kind, by=hold.by, at=hold.at.isoformat(), reason=hold.reason) for hold in on]


def note_views(review: "Review", names: Mapping[str, str], reader: str) -> list[NoteView]:
    return [
        NoteView(id=note.id, who=names.get(note.by, "?"), at=note.at.isoformat(), text=note.text, own=note.by == reader)
        for note in review.notes
    ]


def texts(say: Language) -> dict[str, str]:
    return {
        "work": say("Review of this exchange"),
        "labels": say("Labels"),
        "addLabel": say("Add a label"),
        "removeLabel": say("Remove the label {name}", name="{name}"),
        "note": say("Note"),
        "addNote": say("Write a note; Enter keeps it"),
        "takeBack": say("Take back"),
        "correct": say("Correct"),
        "correction": say("The answer as it should have been"),
        "save": say("Save"),
        "cancel": say("Cancel"),
        "assign": say("Assigned to"),
        "nobody": say("Nobody"),
        "done": say("Done"),
        "doneBy": say("Done: {name}", name="{name}"),
        "again": say("Run again"),
        "run": say("Run"),
        "stop": say("Stop"),
        "logged": say("Logged answer"),
        "seedHint": say("empty: by chance"),
        "like": say("Find others like this"),
        "beside": say("What ran at the same time"),
        "noneBeside": say("Nothing else was waiting or running."),
        "hold": say("Hold"),
        "holdWhat": say("What"),
        "release": say("Release"),
        "reason": say("Reason"),
        "exchange": say("this exchange"),
        "conversation": say("this conversation"),
        "person": say("all of this person"),
        "holdHint": say("What is held is kept, whatever the retention says."),
        "feedback": say("The person said"),
        "seed": say("Seed"),
        "temperature": say("Temperature"),
        "top_p": "top_p",
        "top_k": "top_k",
        "repetition_penalty": say("Repetition penalty"),
        "max_tokens": say("Most tokens"),
    }
