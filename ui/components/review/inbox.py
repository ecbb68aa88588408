"""The review inbox as an element: what the reviewer asks comes as events, what is answered goes by the methods below.

Knows the component's protocol and nothing of the store. What the browser sends is checked by whoever handles it; what
is sent has fixed keys, and text of people and models only as values.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypedDict, get_args

from nicegui.element import Element
from nicegui.events import GenericEventArguments

from engine.types import Source, Status
from ui.components.review.conversation import Said, View
from ui.components.review.facts import source_name, status_name
from ui.components.review.query import FIXED_KEY, Query
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import ExchangeRow

Asked = Literal["visit", "search", "more", "open", "sent"]
Handler = Callable[[Mapping[str, object]], Awaitable[None]]


class Row(TypedDict):
    id: str
    who: str
    at: str  # ISO 8601
    source: str
    status: str
    statusName: str
    prompt: str
    answer: str


class Inbox(Element, component="inbox.js"):
    """Filters, list and opened exchange. `n` is the number that the browser gave its question."""

    def __init__(self, say: Language, people: Sequence[str], handlers: Mapping[Asked, Handler]) -> None:
        super().__init__()
        self.say = say
        self.props["tag"] = say.tag
        self.props["texts"] = texts(say)
        self.props["choices"] = choices(say, people)
        self.props["files"] = [{"format": "csv", "label": "CSV"}, {"format": "jsonl", "label": "JSON lines"}]
        for name, handler in handlers.items():
            self.on(name, _checked(handler))

    def show_list(self, n: int, query: Query, rows: "Sequence[ExchangeRow]", *, more: bool, notice: str = "") -> None:
        fields = query.closed().fields()
        self.run_method(
            "showList",
            n,
            {
                "rows": [row(one, self.say) for one in rows],
                "more": more,
                "query": query.closed().address(),
                "fields": fields,
                "notice": notice,
            },
        )

    def show_more(self, n: int, rows: "Sequence[ExchangeRow]", *, more: bool) -> None:
        self.run_method("showMore", n, {"rows": [row(one, self.say) for one in rows], "more": more})

    def show_opened(self, n: int, view: View) -> None:
        self.run_method("showOpened", n, view)

    def show_missing(self, n: int, sentence: str) -> None:
        self.run_method("showMissing", n, sentence)

    def show_sent(self, id: str, messages: Sequence[Said]) -> None:
        self.run_method("showSent", id, list(messages))

    def show_trouble(self, n: int, sentence: str) -> None:
        """The list could not be read."""
        self.run_method("showTrouble", n, sentence)


def _checked(handler: Handler) -> Callable[[GenericEventArguments], Awaitable[None]]:
    async def handle(event: GenericEventArguments) -> None:
        if isinstance(event.args, dict):
            await handler(event.args)

    return handle


def row(one: "ExchangeRow", say: Language) -> Row:
    return Row(
        id=one.id,
        who=who(one.user_name, say),
        at=one.queued_at.isoformat(),
        source=one.source,
        status=one.status.value,
        statusName=status_name(one.status, say),
        prompt=" ".join(one.prompt.split()),
        answer=" ".join(one.answer.split()),
    )


def who(name: str, say: Language) -> str:
    return name or say("The fixed key")


def choices(say: Language, people: Sequence[str]) -> list[dict[str, object]]:
    """The select boxes: field, label, what "" means, and the options."""

    def choice(field: str, label: str, any: str, options: Mapping[str, str]) -> dict[str, object]:
        listed = [{"value": value, "label": text} for value, text in options.items()]
        return {"field": field, "label": label, "any": any, "options": listed}

    spans = {"today": say("Today"), "7d": say("7 days"), "30d": say("30 days"), "days": say("From – to")}
    statuses = {status.value: status_name(status, say) for status in Status}
    sources = {source: source_name(source, say) for source in get_args(Source)}
    return [
        choice("person", say("Person"), say("Everybody"), {FIXED_KEY: who("", say)} | {name: name for name in people}),
        choice("time", say("Time"), say("Any time"), spans),
        choice("status", say("Status"), say("Any status"), statuses),
        choice("source", say("Source"), say("Any source"), sources),
    ]


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
        "keyNext": say("next and previous"),
        "keySearch": say("search"),
        "keyBack": say("back to the list"),
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
        "today": say("Today"),
        "yesterday": say("Yesterday"),
    }
