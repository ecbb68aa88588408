"""The audit trail: who did what when, newest first, by kind, person and day. Nobody can change it."""

from typing import TYPE_CHECKING

from nicegui import ui

from ui.components.data_table import Column, DataTable, Row
from ui.i18n import Language
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.audit_query import AuditQuery
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
        with ui.element("div").classes("fields four"):
            self.action = ui.select(_kinds(say), value="", label=say("What"), on_change=self._read)
            self.actor = ui.input(say("Who"), on_change=self._read).props('debounce=300 autocomplete="off"')
            self.first = self._day(say("From"))
            self.last = self._day(say("To"))
        columns = [
            Column("at", say("When")),
            Column("actor", say("Who")),
            Column("action", say("What")),
            Column("target", say("Whom or which"), "main"),
            Column("detail", say("Details"), "main"),
        ]
        self.table = DataTable(columns, caption=say("Audit trail"), empty=say("Nothing found."))
        with ui.element("div").classes("buttons"):
            self.older = ui.button(say("Older"), on_click=self._read_on).props("flat no-caps").classes("plain")
            ui.element("span").classes("spring")
            self.files = {
                format: ui.link(text, "").classes("small-button")
                for format, text in (("csv", say("CSV")), ("jsonl", say("JSON lines")))
            }
        await self._read()

    def _day(self, label: str) -> ui.input:
        return ui.input(label, on_change=self._read).props("type=date stack-label debounce=300")

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
        action = _names(self.say).get(entry.action, entry.action)
        return Row(str(entry.id), (self.say.time(entry.at), actor, action, entry.target, entry.detail))


def _kinds(say: Language) -> dict[str, str]:
    """By the beginning of the action's name."""
    return {
        "": say("Everything"),
        "request.": say("Requests"),
        "review.": say("Review"),
        "user.": say("Accounts"),
        "invite.": say("Invitations"),
        "key.": say("API keys"),
        "limits.": say("Limits"),
        "intake.": say("Pause and drain"),
        "banner.": say("Banner"),
        "audit.": say("Audit trail"),
    }


def _names(say: Language) -> dict[str, str]:
    """What was done; actions that are not named here stand as they are."""
    return {
        "request.open": say("opened a prompt"),
        "request.cancel": say("cancelled a request"),
        "request.front": say("moved a request to the front"),
        "review.search": say("searched the log"),
        "review.open": say("opened an exchange"),
        "review.export": say("exported the log"),
        "user.create": say("made an account"),
        "user.role": say("changed a role"),
        "user.disable": say("disabled an account"),
        "user.enable": say("enabled an account"),
        "user.password": say("set a password"),
        "user.limit": say("set a person's limit"),
        "invite.create": say("invited somebody"),
        "invite.take_back": say("took an invitation back"),
        "invite.accept": say("accepted an invitation"),
        "key.revoke": say("revoked an API key"),
        "limits.change": say("changed the limits"),
        "limits.reset": say("put the limits back"),
        "intake.pause": say("paused the server"),
        "intake.drain": say("drained the server"),
        "intake.resume": say("resumed the server"),
        "banner.show": say("put up a banner"),
        "banner.hide": say("took the banner down"),
        "audit.export": say("exported the audit trail"),
    }
