"""Accounts: make one, change its role, disable or enable it, give it another password. All of it is audited."""

from typing import TYPE_CHECKING

from nicegui import ui

from ui.accounts import name_trouble, password_trouble
from ui.components.data_table import Action, Column, DataTable, Row
from ui.i18n import Language
from ui.pages.admin.administrator import Administrator
from ui.passwords import MAX_LENGTH, TooManyHashes
from ui.theme import heading

if TYPE_CHECKING:
    from storage.records import User, UserRole

ROLES: "tuple[UserRole, ...]" = ("staff", "reviewer", "admin")


class People:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        self.users: dict[str, User] = {}

    async def build(self) -> None:
        say = self.say
        heading(say("People"), 2)
        columns = [
            Column("name", say("Name"), "main"),
            Column("role", say("Role"), "choice", _roles(say)),
            Column("state", say("State")),
            Column("seen", say("Last seen")),
            Column("actions", say("Actions"), "actions"),
        ]
        self.table = DataTable(columns, caption=say("People"), empty="", on_act=self._act)
        self._new_account()
        self._new_password()
        await self._show()

    async def _show(self) -> None:
        self.users = {user.id: user for user in await self.desk.store.users.list()}
        self.table.show([self._row(user) for user in self.users.values()])

    def _row(self, user: "User") -> Row:
        say = self.say
        seen = say.time(user.last_seen_at, "short") if user.last_seen_at else say("never")
        state = say("disabled") if user.disabled else say("active")
        switch = Action("enable", say("Enable")) if user.disabled else Action("disable", say("Disable"), "danger")
        actions = (Action("password", say("New password")), switch)
        return Row(user.id, (user.name, user.role, state, seen, actions), tone="soft" if user.disabled else "")

    # --- a new account ---

    def _new_account(self) -> None:
        say = self.say
        heading(say("New account"), 2)
        with ui.element("div").classes("fields"):
            self.name = ui.input(say("Name")).props('maxlength=64 autocomplete="off"')
            self.password = _password(say("Password"))
            self.role = ui.select(_roles(say), value="staff", label=say("Role"))
        ui.button(say("Create the account"), on_click=self._create).props("no-caps unelevated").classes("plain")

    async def _create(self) -> None:
        if not self.admin.may():
            return
        name, password = str(self.name.value or "").strip(), str(self.password.value or "")
        role = next((role for role in ROLES if role == self.role.value), ROLES[0])
        trouble = name_trouble(self.say, name) or password_trouble(self.say, password, password)
        if not trouble and (hashed := await self._hash(password)):
            if await self.desk.store.users.create(name, hashed, role):
                await self.admin.noted("user.create", name, role, afterwards=True)
                self.name.value = self.password.value = ""
                self.admin.tell(self.say("{name} can sign in now.", name=name))
            else:
                trouble = self.say("There is an account of that name already.")
        if trouble:
            self.admin.warn(trouble)
        await self._show()

    # --- changes to one ---

    async def _act(self, name: str, id: str, value: str | None) -> None:
        if not self.admin.may() or (user := self.users.get(id)) is None:
            return
        match name:
            case "role" if value in ROLES:
                await self._set_role(user, next(role for role in ROLES if role == value))
            case "disable" | "enable":
                await self._set_disabled(user, name == "disable")
            case "password":
                self._ask_password(user)
        await self._show()

    async def _set_role(self, user: "User", role: "UserRole") -> None:
        if await self.desk.store.users.set_role(user.id, role):
            await self.desk.auth.user_changed(user.id)
            await self.admin.noted("user.role", user.name, f"{user.role} → {role}", afterwards=True)
        else:
            self._last_administrator()

    async def _set_disabled(self, user: "User", disabled: bool) -> None:
        """A disabled person is out at once: no session, no key, and nothing that runs or waits."""
        if not await self.desk.store.users.set_disabled(user.id, disabled):
            self._last_administrator()
            return
        await self.desk.auth.user_changed(user.id)
        await self.admin.noted("user.disable" if disabled else "user.enable", user.name, afterwards=True)

    def _last_administrator(self) -> None:
        self.admin.warn(self.say("That is the last administrator. Make somebody else one first."))

    # --- another password ---

    def _new_password(self) -> None:
        say = self.say
        with ui.dialog() as self.dialog, ui.card().classes("dialog"):
            self.dialog_title = ui.label().classes("dialog-title")
            ui.label(say("It ends the person's sessions. They can change it on their account page.")).classes("soft")
            self.fresh_password = _password(say("New password"))
            with ui.element("div").classes("dialog-buttons"):
                ui.button(say("Back"), on_click=self.dialog.close).props("flat no-caps")
                self.set_password = ui.button(say("Set the password"), on_click=self._set_password)
                self.set_password.props("no-caps unelevated")
        self.subject: User | None = None

    def _ask_password(self, user: "User") -> None:
        self.subject = user
        self.fresh_password.value = ""
        self.dialog_title.text = self.say("New password for {name}", name=user.name)
        self.dialog.open()

    async def _set_password(self) -> None:
        if not self.admin.may() or (user := self.subject) is None:
            return
        password = str(self.fresh_password.value or "")
        if trouble := password_trouble(self.say, password, password):
            self.admin.warn(trouble)
        elif hashed := await self._hash(password):
            await self.desk.store.users.set_password(user.id, hashed)
            await self.desk.auth.sign_out_everywhere(user.id)
            await self.admin.noted("user.password", user.name, afterwards=True)
            self.dialog.close()
            self.admin.tell(self.say("{name} has a new password.", name=user.name))

    async def _hash(self, password: str) -> str | None:
        try:
            return await self.desk.auth.passwords.hash(password)
        except TooManyHashes:
            self.admin.warn(self.say("Many people are signing in just now. Please try again."))
            return None


def _password(label: str) -> ui.input:
    return ui.input(label, password=True).props(f'autocomplete="new-password" maxlength={MAX_LENGTH}')


def _roles(say: Language) -> dict[str, str]:
    return {"staff": say("Staff"), "reviewer": say("Reviewer"), "admin": say("Administrator")}
