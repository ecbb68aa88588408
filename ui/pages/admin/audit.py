"""The audit trail: who did what when, newest first, by kind and by person. It can be read here and changed nowhere."""

from typing import TYPE_CHECKING

from nicegui import ui

from ui.components.data_table import Column, DataTable, Row
from ui.i18n import Language
from ui.pages.admin.administrator import Administrator
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
        with ui.element("div").classes("fields"):
            self.action = ui.select(_kinds(say), value="", label=say("What"), on_change=self._read)
            self.actor = ui.input(say("Who"), on_change=self._read).props('debounce=300 autocomplete="off"')
        columns = [
            Column("at", say("When")),
            Column("actor", say("Who")),
            Column("action", say("What")),
            Column("target", say("Whom or which"), "main"),
            Column("detail", say("Details"), "main"),
        ]
        self.table = DataTable(columns, caption=say("Audit trail"), empty=say("Nothing found."))
        self.older = ui.button(say("Older"), on_click=self._read_on).props("flat no-caps").classes("plain")
        await self._read()

    async def _read(self) -> None:
        self.entries, self.cursor = [], None
        await self._read_on()

    async def _read_on(self) -> None:
        if not self.admin.may():
            return
        action, actor, known = str(self.action.value or ""), str(self.actor.value or "").strip(), self.entries
        page = await self.desk.store.audit.list(action=action, actor=actor or None, limit=PIECE, cursor=self.cursor)
        if known is not self.entries:
            return  # another reading has begun meanwhile
        self.entries, self.cursor = [*known, *page.items], page.next
        self.table.show([self._row(entry) for entry in self.entries])
        self.older.visible = self.cursor is not None

    def _row(self, entry: "AuditEntry") -> Row:
        actor = entry.actor or self.say("the server")
        return Row(str(entry.id), (self.say.time(entry.at), actor, entry.action, entry.target, entry.detail))


def _kinds(say: Language) -> dict[str, str]:
    """By the beginning of the action's name."""
    return {
        "": say("Everything"),
        "request.": say("Requests"),
        "review.": say("Review"),
        "user.": say("Accounts"),
        "limits.": say("Limits"),
    }
