"""A table of text cells, with a choice and buttons in its rows. Sends only when something has changed.

Knows nothing of what it shows. Texts are shown as text, whoever wrote them; moments in the reader's time zone.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Literal

from nicegui.element import Element
from nicegui.events import GenericEventArguments


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    label: str
    kind: Literal["text", "main", "number", "choice", "actions"] = "text"
    options: Mapping[str, str] = field(default_factory=dict)  # of a choice: value -> text


@dataclass(frozen=True, slots=True)
class Action:
    """A button in a row."""

    name: str
    label: str
    tone: Literal["", "danger"] = ""


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    cells: tuple[str | datetime | tuple[Action, ...], ...]  # one a column; the first names a row with buttons
    tone: Literal["", "soft"] = ""


Act = Callable[[str, str, str | None], Awaitable[None]]


class DataTable(Element, component="data_table.js"):
    """`on_act(name, row id, value)` is called for buttons (value None) and choices (name is the column's key)."""

    def __init__(self, columns: Sequence[Column], *, caption: str, empty: str, on_act: Act | None = None) -> None:
        super().__init__()
        self._rows: list[Row] = []
        self._props["columns"] = [_column(column) for column in columns]
        self._props["rows"] = []
        self._props["caption"], self._props["empty"] = caption, empty
        self._on_act = on_act
        self.on("act", self._act)

    def _handle_delete(self) -> None:
        super()._handle_delete()
        self._on_act = None  # whoever has given it holds this table

    def show(self, rows: Sequence[Row]) -> None:
        if list(rows) != self._rows:
            self._rows = list(rows)
            self._props["rows"] = [_row(row) for row in rows]
            self.update()

    async def _act(self, event: GenericEventArguments) -> None:
        """What comes from a browser may be anything; what this table did not offer is passed over."""
        asked = event.args if isinstance(event.args, dict) else {}
        name, id, value = asked.get("name"), asked.get("id"), asked.get("value")
        known = isinstance(name, str) and isinstance(id, str) and (value is None or isinstance(value, str))
        if self._on_act and known and any(row.id == id for row in self._rows):
            await self._on_act(str(name), str(id), value)


def _row(row: Row) -> dict[str, object]:
    sent = asdict(row)
    sent["cells"] = [{"at": cell.isoformat()} if isinstance(cell, datetime) else cell for cell in sent["cells"]]
    return sent


def _column(column: Column) -> dict[str, object]:
    options = [{"value": value, "label": label} for value, label in column.options.items()]
    return {"key": column.key, "label": column.label, "kind": column.kind, "options": options}
