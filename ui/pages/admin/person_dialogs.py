"""What an administrator sets for one person: another password, a limit, and no second step where the phone is lost."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from nicegui import ui

from ui.accounts import password_trouble
from ui.components.dialogs import titled
from ui.pages.admin.administrator import Administrator
from ui.passwords import MAX_LENGTH, TooManyHashes
from ui.steering import apply_own_limits

if TYPE_CHECKING:
    from storage.records import User

MOST = 1000  # requests of one person


class PasswordDialog:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        say = self.say
        with titled() as (self.dialog, self.title):
            ui.label(say("It ends the person's sessions. They can change it on their account page.")).classes("soft")
            with ui.element("form").on("submit.prevent", self._set):
                self.password = password_field(say("New password"))
                with ui.element("div").classes("dialog-buttons"):
                    ui.button(say("Back"), on_click=self.dialog.close).props("flat no-caps")
                    ui.button(say("Set the password")).props("type=submit no-caps unelevated")
        self.user: User | None = None

    def ask(self, user: "User") -> None:
        self.user = user
        self.password.value = ""
        self.title.text = self.say("New password for {name}", name=user.name)
        self.dialog.open()

    async def _set(self) -> None:
        if not self.admin.may() or (user := self.user) is None:
            return
        password = str(self.password.value or "")
        if trouble := password_trouble(self.say, password, password):
            self.admin.warn(trouble)
        elif hashed := await hashed_password(self.admin, password):
            await self.desk.store.users.set_password(user.id, hashed)
            await self.desk.auth.sign_out_everywhere(user.id)
            await self.admin.noted("user.password", user.name, afterwards=True)
            self.dialog.close()
            self.admin.tell(self.say("{name} has a new password.", name=user.name))


class LimitDialog:
    def __init__(self, admin: Administrator, changed: Callable[[], Awaitable[None]]) -> None:
        self.admin, self.desk, self.say, self._changed = admin, admin.desk, admin.say, changed
        say = self.say
        with titled() as (self.dialog, self.title):
            self.about = ui.label().classes("soft")
            self.most = ui.number(say("Requests at once"), format="%d", min=0, max=MOST).props('inputmode="numeric"')
            with ui.element("div").classes("dialog-buttons"):
                ui.button(say("Back"), on_click=self.dialog.close).props("flat no-caps")
                ui.button(say("Set the limit"), on_click=self._set).props("no-caps unelevated")
        self.user: User | None = None

    def ask(self, user: "User") -> None:
        self.user = user
        self.title.text = self.say("Limit of {name}", name=user.name)
        everybody = self.desk.service.gate.limits.per_person
        self.about.text = self.say("Running and waiting. Empty: {n}, as everybody.", n=everybody)
        self.most.value = user.max_requests
        self.dialog.open()

    async def _set(self) -> None:
        if not self.admin.may() or (user := self.user) is None:
            return
        most = self.most.value
        if most is not None and (most != int(most) or not 0 <= most <= MOST):
            self.admin.warn(self.say("Please give a whole number from {least} to {most}.", least=0, most=MOST))
            return
        limit = None if most is None else int(most)
        told = f"{_told(user.max_requests)} → {_told(limit)}"
        if await self.admin.noted("user.limit", user.name, told):
            await self.desk.store.users.set_max_requests(user.id, limit)
            await apply_own_limits(self.desk)
            self.dialog.close()
            await self._changed()


class SecondStepDialog:
    def __init__(self, admin: Administrator, changed: Callable[[], Awaitable[None]]) -> None:
        self.admin, self.desk, self.say, self._changed = admin, admin.desk, admin.say, changed
        say = self.say
        about = say("For somebody without phone and recovery codes. Make sure who asks. It ends the person's sessions.")
        with titled() as (self.dialog, self.title):
            ui.label(about).classes("soft")
            with ui.element("div").classes("dialog-buttons"):
                ui.button(say("Back"), on_click=self.dialog.close).props("flat no-caps")
                ui.button(say("Reset second step"), on_click=self._reset).props("no-caps unelevated")
        self.user: User | None = None

    def ask(self, user: "User") -> None:
        self.user = user
        self.title.text = self.say("Second step of {name}", name=user.name)
        self.dialog.open()

    async def _reset(self) -> None:
        if not self.admin.may() or (user := self.user) is None:
            return
        if await self.admin.noted("user.second_step_reset", user.name):
            await self.desk.store.second_factors.turn_off(user.id)
            await self.desk.auth.sign_out_everywhere(user.id)
            self.dialog.close()
            self.admin.tell(self.say("{name} signs in without a second step now.", name=user.name))
            await self._changed()


def _told(limit: int | None) -> str:
    return "as everybody" if limit is None else str(limit)


def password_field(label: str) -> ui.input:
    return ui.input(label, password=True).props(f'autocomplete="new-password" maxlength={MAX_LENGTH}')


async def hashed_password(admin: Administrator, password: str) -> str | None:
    """None: too many are being hashed, and the administrator is told so."""
    try:
        return await admin.desk.auth.passwords.hash(password)
    except TooManyHashes:
        admin.warn(admin.say("Many people are signing in just now. Please try again."))
        return None
