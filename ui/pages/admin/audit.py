"""The audit trail: who did what when, newest first, by kind, person and day. Nobody can change it."""

from typing import TYPE_CHECKING

from nicegui import ui

from ui.components.data_table import Column, DataTable, Row
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.audit_query import AuditQuery
from ui.pages.admin.audit_words import details, kinds, names
from ui.theme import heading

if TYPE_CHECKING:
    from storage.records import AuditEntry

PIECE = 50


class AuditTrail:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        self.entries: list[AuditEntry] = []
        self.cursor: str | None = None

    async def build(self) -> None:
        say = self.say
        heading(say("Audit trail"), 2)
        with ui.element("div").classes("fields audit"):
            self.action = ui.select(kinds(say), value="", label=say("What"), on_change=self._read)
            self.actor = ui.input(say("Who"), on_change=self._read).props('debounce=300 autocomplete="off"')
            self.first = self._day(say("From"))
            self.last = self._day(say("To"))
            with ui.element("div").classes("files"):
                self.files = {
                    format: ui.link(text, "").classes("small-button")
                    for format, text in (("csv", say("CSV")), ("jsonl", say("JSON lines")))
                }
        columns = [
            Column("at", say("When")),
            Column("actor", say("Who")),
            Column("action", say("What")),
            Column("target", say("Whom or which"), "main"),
            Column("detail", say("Details")),
        ]
        self.table = DataTable(columns, caption=say("Audit trail"), empty=say("Nothing found."))
        with ui.element("div").classes("buttons"):
            self.older = ui.button(say("Older"), on_click=self._read_on).props("outline no-caps").classes("plain")
        await self._read()

    def _day(self, label: str) -> ui.input:
        return ui.input(label, on_change=self._read).props("type=date debounce=300")

    async def _read(self) -> None:
        self.entries, self.cursor = [], None
        query = self._query()
        for format, link in self.files.items():
            link.props["href"] = f"/admin/audit/export?format={format}&{query.address()}"
            link.update()
        await self._read_on()

    def _query(self) -> AuditQuery:
        fields = (self.action, self.actor, self.first, self.last)
        action, actor, first, last = (str(field.value or "").strip() for field in fields)
        try:
            return AuditQuery.parse({"action": action, "actor": actor, "first": first, "last": last})
        except ValueError:  # a day that is still being typed
            return AuditQuery(action, actor)

    async def _read_on(self) -> None:
        if not self.admin.may():
            return
        known = self.entries
        page = await self.desk.store.audit.list(**self._query().conditions(), limit=PIECE, cursor=self.cursor)
        if known is not self.entries:
            return  # another reading has begun meanwhile
        self.entries, self.cursor = [*known, *page.items], page.next
        self.table.show([self._row(entry) for entry in self.entries])
        self.older.visible = self.cursor is not None

    def _row(self, entry: "AuditEntry") -> Row:
        actor = entry.actor or self.say("the server")
        action, detail = names(self.say).get(entry.action, entry.action), details(self.say, entry.action, entry.detail)
        return Row(str(entry.id), (entry.at, actor, action, entry.target, detail))
