"""What a reviewer may choose from: lists, filters, keys. Texts in the reader's language; knows no element."""

from collections.abc import Mapping, Sequence
from typing import TypedDict, get_args

from engine.types import Source, Status
from ui.components.review.facts import source_name, status_name
from ui.components.review.query import FIXED_KEY
from ui.i18n import Language


class Option(TypedDict):
    value: str
    label: str


class Choice(TypedDict):
    """A select box: the field of the address, its label, what "" means, and the options."""

    field: str
    label: str
    any: str
    options: list[Option]


def choices(say: Language, people: Sequence[str], models: Sequence[str], labels: Sequence[str]) -> list[Choice]:
    spans = {"today": say("Today"), "7d": say("7 days"), "30d": say("30 days"), "days": say("From – to")}
    statuses = {status.value: status_name(status, say) for status in Status}
    sources = {source: source_name(source, say) for source in get_args(Source)}
    ratings = {"down": say("Thumbs down"), "up": say("Thumbs up")}
    askers = {FIXED_KEY: say("The fixed key")} | _same(people)
    return [
        _choice("person", say("Person"), say("Everybody"), askers),
        _choice("time", say("Time"), say("Any time"), spans),
        _choice("status", say("Status"), say("Any status"), statuses),
        _choice("source", say("Source"), say("Any source"), sources),
        _choice("model", say("Model"), say("Any model"), _same(models)),
        _choice("rating", say("Rating"), say("Any rating"), ratings),
        _choice("label", say("Label"), say("Any label"), _same(labels)),
    ]


def lists(say: Language) -> list[Option]:
    """The values are those of Query.list."""
    return [
        Option(value="", label=say("All")),
        Option(value="down", label=say("Thumbs down")),
        Option(value="cut", label=say("Failed or cut off")),
        Option(value="waits", label=say("Long waits")),
        Option(value="open", label=say("Unreviewed")),
        Option(value="mine", label=say("Mine")),
    ]


def keys(say: Language) -> list[tuple[list[str], str]]:
    return [
        (["j", "k"], say("next and previous")),
        (["l"], say("give a label")),
        (["n"], say("write a note")),
        (["c"], say("correct the answer")),
        (["a"], say("assign")),
        (["d"], say("done, and on to the next")),
        (["/"], say("search")),
        (["?"], say("show the keys")),
        (["Esc"], say("out of a field, back to the list")),
    ]


def _same(names: Sequence[str]) -> dict[str, str]:
    return {name: name for name in names}


def _choice(field: str, label: str, any: str, options: Mapping[str, str]) -> Choice:
    listed = [Option(value=value, label=text) for value, text in options.items()]
    return Choice(field=field, label=label, any=any, options=listed)
