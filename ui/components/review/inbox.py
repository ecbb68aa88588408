"""The review inbox as an element: what the reviewer asks comes as events, what is answered goes by the methods below.

Knows the component's protocol and nothing of the store. What the browser sends is checked by whoever handles it; what
is sent has fixed keys, and text of people and models only as values.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from ui.components.markdown_html import words
from ui.components.review.choices import Choice, keys, lists
from ui.components.review.conversation import Part, Said, View
from ui.components.review.facts import status_name
from ui.components.review.query import Query
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import ExchangeRow, Mark, ReviewCounts

Asked = Literal["search", "more", "open", "sent"]
Handler = Callable[[Mapping[str, object]], Awaitable[None]]


class Marks(TypedDict):
    """What a row shows of the person's rating and the reviewers' work."""

    rating: str  # "", "up" or "down"
    labels: list[str]
    assignee: str  # name
    done: bool


class Row(TypedDict):
    id: str
    who: str
    at: str  # ISO 8601
    source: str
    status: str
    statusName: str
    prompt: str
    answer: str
    snippet: str
    marks: Marks


class Inbox(Element, component="inbox.js"):
    """Filters, list and opened exchange. `n` is the number that the browser gave its question."""

    def __init__(self, say: Language, choices: "list[Choice]", handlers: Mapping[Asked, Handler]) -> None:
        super().__init__()
        self.say = say
        self.names: Mapping[str, str] = {}  # of reviewers, by user id
        self.props["tag"] = say.tag
        self.props["texts"] = texts(say)
        self.props["keys"] = keys(say)
        self.props["lists"] = lists(say)
        self.props["choices"] = choices
        self.props["files"] = [
            {"format": "csv", "label": "CSV"},
            {"format": "jsonl", "label": "JSON lines"},
            {"format": "chat", "label": say("Chat lines")},
        ]
        for name, handler in handlers.items():
            self.on(name, checked(handler))

    def show_list(
        self,
        n: int,
        query: Query,
        rows: "Sequence[ExchangeRow]",
        marks: "Mapping[str, Mark]",
        *,
        more: bool,
        notice: str = "",
    ) -> None:
        fields = query.closed().fields()
        self.run_method(
            "showList",
            n,
            {
                "rows": self._rows(rows, marks),
                "more": more,
                "query": query.closed().address(),
                "fields": fields,
                "notice": notice,
            },
        )

    def show_more(self, n: int, rows: "Sequence[ExchangeRow]", marks: "Mapping[str, Mark]", *, more: bool) -> None:
        self.run_method("showMore", n, {"rows": self._rows(rows, marks), "more": more})

    def show_marks(self, id: str, mark: "Mark | None") -> None:
        """What the row of this exchange shows has changed."""
        self.run_method("showMarks", id, marks_of(mark, self.names))

    def show_counts(self, counts: "ReviewCounts") -> None:
        people = sorted(counts.assigned.keys() | counts.done.keys(), key=lambda id: self.names.get(id, ""))
        reviewers = [
            {"name": self.names.get(id, "?"), "todo": counts.assigned.get(id, 0), "done": counts.done.get(id, 0)}
            for id in people
        ]
        labels = sorted(counts.labels.items(), key=lambda each: (-each[1], each[0]))
        self.run_method("showCounts", {"reviewers": reviewers, "labels": [{"name": n, "n": c} for n, c in labels]})

    def _rows(self, rows: "Sequence[ExchangeRow]", marks: "Mapping[str, Mark]") -> list[Row]:
        return [row(one, marks_of(marks.get(one.id), self.names), self.say) for one in rows]

    def show_opened(self, n: int, view: View) -> None:
        self.run_method("showOpened", n, view)

    def show_missing(self, n: int, sentence: str) -> None:
        self.run_method("showMissing", n, sentence)

    def show_sent(self, id: str, messages: Sequence[Said], prompt: Sequence[Part], why_not: str) -> None:
        """What went to the model: the messages, and the prompt that its template makes of them, or why not that.

        Without messages it is told why there are none, and can be asked for again.
        """
        self.run_method("showSent", id, {"messages": list(messages), "prompt": list(prompt), "whyNot": why_not})

    def show_trouble(self, n: int, sentence: str) -> None:
        """The list could not be read."""
        self.run_method("showTrouble", n, sentence)


def checked(handler: Handler) -> Callable[[GenericEventArguments], Awaitable[None]]:
    async def handle(event: GenericEventArguments) -> None:
        if isinstance(event.args, dict):
            await handler(event.args)

    return handle


def marks_of(mark: "Mark | None", names: Mapping[str, str]) -> Marks:
    if mark is None:
        return Marks(rating="", labels=[], assignee="", done=False)
    return Marks(
        rating={1: "up", -1: "down"}.get(mark.rating or 0, ""),
        labels=list(mark.labels),
        assignee=names.get(mark.assignee or "", ""),
        done=mark.done,
    )


def row(one: "ExchangeRow", marks: Marks, say: Language) -> Row:
    return Row(
        id=one.id,
        who=who(one.user_name, say),
        at=one.queued_at.isoformat(),
        source=one.source,
        status=one.status.value,
        statusName=status_name(one.status, say),
        prompt=" ".join(one.prompt.split()),
        answer=words(one.answer),
        snippet=one.snippet,
        marks=marks,
    )


def who(name: str, say: Language) -> str:
    return name or say("The fixed key")


def texts(say: Language) -> dict[str, str]:
    return {
        "filters": say("Filters"),
        "search": say("Search in prompts and answers"),
        "imported": say("Imported"),
        "from": say("From"),
        "to": say("To"),
        "clear": say("Clear"),
        "export": say("Export what is listed"),
        "list": say("Exchanges"),
        "searching": say("Searching …"),
        "nothing": say("Nothing matches. Try fewer filters."),
        "empty": say("Nothing has been asked yet."),
        "more": say("Show more"),
        "end": say("That is all."),
        "opened": say("Opened exchange"),
        "choose": say("Choose an exchange to read it here."),
        "keys": say("Keys"),
        "close": say("Close"),
        "lists": say("Lists"),
        "like": say("Like an exchange"),
        "up": say("Thumbs up"),
        "down": say("Thumbs down"),
        "reviewer": say("Reviewer"),
        "todo": say("To do"),
        "done": say("Done"),
        "label": say("Label"),
        "count": say("Exchanges"),
        "retention": say("Retention and legal hold"),
        "back": say("Back"),
        "copyLink": say("Copy link"),
        "copied": say("Copied"),
        "thisOne": say("Opened"),
        "olderVersion": say("Older version"),
        "newerVersion": say("Newer version"),
        "noAnswer": say("No answer."),
        "numbers": say("Numbers"),
        "showSent": say("Show the exact messages sent to the model"),
        "sent": say("Messages as sent to the model"),
        "prompt": say("The prompt as the model reads it, with its control tokens"),
        "today": say("Today"),
        "yesterday": say("Yesterday"),
    }
