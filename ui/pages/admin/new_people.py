"""New accounts: made here with a password, or by an invitation's link, and the invitations that are still open."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from ui.accounts import name_trouble, password_trouble
from ui.components.data_table import Action, Column, DataTable, Row
from ui.invitations import LASTS, invite, link_of
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.person_dialogs import hashed_password, password_field
from ui.pages.admin.roles import chosen, roles
from ui.theme import heading


class NewPeople:
    def __init__(self, admin: Administrator, changed: Callable[[], Awaitable[None]]) -> None:
        self.admin, self.desk, self.say, self._changed = admin, admin.desk, admin.say, changed
        self.request = ui.context.client.request

    async def build(self) -> None:
        say = self.say
        heading(say("New account"), 2)
        about = say(
            "With a password, the account is there at once. Without one, you get a link to send, which works once "
            "and for {n} days.",
            n=LASTS.days,
        )
        ui.label(about).classes("soft")
        with ui.element("form").on("submit.prevent", self._create):  # Enter does what the first button does
            with ui.element("div").classes("fields four"):
                self.name = ui.input(say("Name")).props('maxlength=64 autocomplete="off"')
                self.role = ui.select(roles(say), value="staff", label=say("Role"))
                self.password = password_field(say("Password"))
            with ui.element("div").classes("buttons"):
                ui.button(say("Create the account")).props("type=submit no-caps unelevated").classes("plain")
                ui.button(say("Invite by link"), on_click=self._invite).props("no-caps outline").classes("plain")
        self.fresh = ui.element("div").classes("fresh").props('role="status"')
        columns = [
            Column("name", say("Invited"), "main"),
            Column("role", say("Role")),
            Column("by", say("By")),
            Column("until", say("Until")),
            Column("actions", say("Actions"), "actions"),
        ]
        self.table = DataTable(columns, caption=say("Invitations"), empty="", on_act=self._act)
        await self._show()

    async def _show(self) -> None:
        say, names = self.say, roles(self.say)
        take_back = (Action("take_back", say("Take back"), "danger"),)
        rows = [
            Row(
                each.id,
                (
                    each.name or say("chooses a name"),
                    names[each.role],
                    each.invited_by,
                    each.expires_at,
                    take_back,
                ),
            )
            for each in await self.desk.store.invites.list()
        ]
        self.table.show(rows)
        self.table.visible = bool(rows)

    async def _create(self) -> None:
        if not self.admin.may():
            return
        name, password, role = str(self.name.value or "").strip(), str(self.password.value or ""), self.role.value
        trouble = name_trouble(self.say, name) or password_trouble(self.say, password, password)
        if not trouble and (hashed := await hashed_password(self.admin, password)):
            if await self.desk.store.users.create(name, hashed, chosen(role)):
                await self.admin.noted("user.create", name, chosen(role), afterwards=True)
                self.name.value = self.password.value = ""
                self.admin.tell(self.say("{name} can sign in now.", name=name))
            else:
                trouble = self.say("There is an account of that name already.")
        if trouble:
            self.admin.warn(trouble)
        await self._changed()

    async def _invite(self) -> None:
        if not self.admin.may():
            return
        name, role = str(self.name.value or "").strip(), chosen(self.role.value)
        trouble = name_trouble(self.say, name) if name else ""
        if name and not trouble and await self.desk.store.users.by_name(name):
            trouble = self.say("There is an account of that name already.")
        if trouble:
            self.admin.warn(trouble)
        elif await self.admin.noted("invite.create", name, role):
            token = await invite(self.desk, name, role, self.admin.name)
            self.name.value = self.password.value = ""
            self.fresh.clear()
            with self.fresh:
                ui.label(self.say("Send this link now; it is not shown again."))
                ui.label(link_of(self.desk, token, self.request)).classes("key").props("tabindex=0").mark("invite-link")
            await self._show()

    async def _act(self, name: str, id: str, value: str | None) -> None:
        if not self.admin.may() or name != "take_back":
            return
        known = next((each for each in await self.desk.store.invites.list() if each.id == id), None)
        if known and await self.admin.noted("invite.take_back", known.name, known.role):
            await self.desk.store.invites.take_back(id)
            self.fresh.clear()
        await self._show()
