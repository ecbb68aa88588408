"""Accounts: who is there and how much they use; change a role, disable, set a password or a limit. All is audited."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from loguru import logger
from nicegui import background_tasks, ui

from ui.components.data_table import Action, Column, DataTable, Row
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.keys import Keys
from ui.pages.admin.new_people import NewPeople
from ui.pages.admin.person_dialogs import LimitDialog, PasswordDialog, SecondStepDialog
from ui.pages.admin.roles import ROLES, roles
from ui.theme import heading

if TYPE_CHECKING:
    from storage.records import User, UserRole

SHOWN = 200  # rows; more are found by the search

Usage = Mapping[str, tuple[int, int]]  # by user id: requests, tokens


class People:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        self.users: dict[str, User] = {}
        self.today: Usage = {}
        self.month: Usage = {}
        self.sessions: Mapping[str, int] = {}

    async def build(self) -> None:
        say = self.say
        heading(say("People"), 2)
        with ui.element("div").classes("fields"):
            self.search = ui.input(say("Search"), on_change=self._show_rows).props('debounce=200 autocomplete="off"')
        columns = [
            Column("name", say("Name"), "main"),
            Column("role", say("Role"), "choice", roles(say)),
            Column("state", say("State")),
            Column("seen", say("Last seen")),
            Column("sessions", say("Sessions"), "number"),
            Column("today", say("Requests today"), "number"),
            Column("today_tokens", say("Tokens today"), "number"),
            Column("month", say("Requests, 30 days"), "number"),
            Column("month_tokens", say("Tokens, 30 days"), "number"),
            Column("limit", say("At once"), "number"),
            Column("actions", say("Actions"), "actions"),
        ]
        self.table = DataTable(columns, caption=say("People"), empty=say("Nothing found."), on_act=self._act)
        self.more = ui.label().classes("soft")
        self.password = PasswordDialog(self.admin)
        self.limit = LimitDialog(self.admin, self._show)
        self.second_step = SecondStepDialog(self.admin, self._show)
        await self._show()
        background_tasks.create(self._read_usage(), name="usage of people")
        if self.desk.settings.password_sign_in:  # else accounts come from elsewhere
            await NewPeople(self.admin, self._show).build()
        await Keys(self.admin).build()

    async def _show(self) -> None:
        """Read the accounts anew."""
        self.users = {user.id: user for user in await self.desk.store.users.list()}
        self.sessions = await self.desk.store.sessions.counts()
        self._show_rows()

    async def _read_usage(self) -> None:
        """Once, beside the page: a month of a busy server takes its time. What cannot be read stays a dash."""
        usage, now = self.desk.store.exchanges.usage, datetime.now(UTC)
        midnight = now.astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
        try:
            self.today = await usage(midnight.astimezone(UTC))
            self.month = await usage(now - timedelta(days=30))
        except Exception as error:
            logger.warning("the usage of people cannot be read: {!r}", error)
        self._show_rows()

    def _show_rows(self) -> None:
        wanted = str(self.search.value or "").strip().casefold()
        found = [user for user in self.users.values() if wanted in self._searched(user)]
        self.table.show([self._row(user) for user in found[:SHOWN]])
        self.more.visible = len(found) > SHOWN
        self.more.text = self.say("{n} more are found; search for a name.", n=len(found) - SHOWN)

    def _searched(self, user: "User") -> str:
        state = self.say("disabled") if user.disabled else self.say("active")
        return f"{user.name} {roles(self.say)[user.role]} {state}".casefold()

    def _row(self, user: "User") -> Row:
        say = self.say
        seen = user.last_seen_at or say("never")
        state = say("disabled") if user.disabled else say("active")
        switch = Action("enable", say("Enable")) if user.disabled else Action("disable", say("Disable"), "danger")
        actions = [Action("limit", say("Limit"))]
        if self.desk.settings.password_sign_in:
            actions.append(Action("password", say("New password")))
        if user.second_step:
            actions.append(Action("second_step", say("Reset second step")))
        counts = [
            self.sessions.get(user.id, 0),
            *self.today.get(user.id, (0, 0)),
            *self.month.get(user.id, (0, 0)),
        ]
        numbers = [say.number(count) if count else "–" for count in counts]
        limit = "" if user.max_requests is None else say.number(user.max_requests)
        words = (user.name, user.role, state, seen, *numbers, limit)
        return Row(user.id, (*words, (*actions, switch)), tone="soft" if user.disabled else "")

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
                self.password.ask(user)
            case "limit":
                self.limit.ask(user)
            case "second_step":
                self.second_step.ask(user)
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
