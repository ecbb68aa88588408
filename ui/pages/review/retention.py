"""/review/retention: how long the log is kept, what would go, what is held, and erasing a person's data.

For administrators. Nothing is deleted before its count was shown and the button below it pressed.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from loguru import logger
from nicegui import ui

from ui.components.data_table import Action, Column, DataTable, Row
from ui.desk import Desk
from ui.erasing import StillAnswering, end_answers, erase, why_not_erased
from ui.i18n import Language
from ui.pages.admin.administrator import Administrator, administration
from ui.retention import LONGEST_DAYS, days_now, keep_days, retain
from ui.theme import BUILT_WITHIN_S, heading

if TYPE_CHECKING:
    from storage.records import Hold, User
    from storage.retention import Days, Kind

KINDS: "tuple[Kind, ...]" = ("exchanges", "audit", "samples")


def register(desk: Desk) -> None:
    @ui.page("/review/retention", response_timeout=BUILT_WITHIN_S)
    async def retention() -> None:
        with administration(desk, active="/review/retention") as admin:
            await DaysForm(admin).build()
            await Holds(admin).build()
            await Erasing(admin).build()


class DaysForm:
    """The form of the days, and what would be deleted with them."""

    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say

    async def build(self) -> None:
        say, days = self.say, await days_now(self.desk)
        ui.label(say("Days after which each kind is deleted; 0 keeps all. Totals by person and day stay.")).classes(
            "soft"
        )
        with ui.element("div").classes("fields four"):
            self.fields = {
                kind: ui.number(label, value=days[kind], format="%d").props('inputmode="numeric"').mark(kind)
                for kind, label in kinds(say).items()
            }
        with ui.element("div").classes("buttons"):
            _button(say("Show what would be deleted"), self._plan)
            _button(say("Save the days"), self._keep, main=True)
        self.plan = ui.column().classes("plan").props('role="status"')

    async def _plan(self) -> None:
        if (days := self._read()) is None:
            return
        due = await self.desk.store.retention.plan(days)
        names = kinds(self.say)
        self.plan.clear()
        with self.plan:
            for kind, one in due.items():
                if not days[kind]:
                    text = self.say("{kind}: all are kept.", kind=names[kind])
                else:
                    text = self.say("{kind}: {n} would be deleted now.", kind=names[kind], n=self.say.number(one.goes))
                    if one.held:
                        text += " " + self.say("{n} are old enough, but held.", n=self.say.number(one.held))
                ui.label(text)
            if any(one.goes for one in due.values()):
                _button(self.say("Save the days and delete now"), self._delete, danger=True)

    async def _keep(self) -> None:
        days = self._read()
        if days is None:
            return
        detail = ", ".join(f"{kind} {number}" for kind, number in days.items())
        if await self.admin.noted("retention.change", detail=detail):
            await keep_days(self.desk, days)
            self.admin.tell(self.say("The days are saved. What is older is deleted once a day."))

    async def _delete(self) -> None:
        days = self._read()
        if days is None or not await self.admin.noted("retention.change", detail=str(days)):
            return
        await keep_days(self.desk, days)
        deleted = await retain(self.desk, self.admin.name)
        count = self.say.number(sum(deleted.values()))
        self.plan.clear()
        with self.plan:
            ui.label(self.say("{n} are deleted, with all of their text.", n=count))

    def _read(self) -> "Days | None":
        """What the fields say; None, and told, where they make no sense or this is no administrator any more."""
        if not self.admin.may():
            return None
        days: Days = {}
        for kind, label in kinds(self.say).items():
            value = self.fields[kind].value
            if not isinstance(value, int | float) or value != int(value) or not 0 <= value <= LONGEST_DAYS:
                self.admin.warn(
                    self.say(
                        "{label}: please give a whole number from {least} to {most}.",
                        label=label,
                        least=0,
                        most=LONGEST_DAYS,
                    )
                )
                return None
            days[kind] = int(value)
        return days


class Holds:
    """What is held, and releasing it. Holds are set where an exchange is open in the inbox."""

    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        self.holds: dict[str, Hold] = {}

    async def build(self) -> None:
        say = self.say
        heading(say("Held"), 2)
        columns = [
            Column("what", say("What"), "main"),
            Column("reason", say("Reason")),
            Column("by", say("Held by")),
            Column("at", say("Since")),
            Column("actions", say("Actions"), "actions"),
        ]
        empty = say("Nothing is held. An exchange, a conversation or a person is held from the opened exchange.")
        self.table = DataTable(columns, caption=say("Held"), empty=empty, on_act=self._act)
        await self._show()

    async def _show(self) -> None:
        names = {user.id: user.name for user in await self.desk.store.users.list()}
        self.holds = {f"{hold.kind} {hold.target}": hold for hold in await self.desk.store.retention.holds()}
        self.table.show([self._row(key, hold, names) for key, hold in self.holds.items()])

    def _row(self, key: str, hold: "Hold", names: dict[str, str]) -> Row:
        say = self.say
        match hold.kind:
            case "exchange":
                what = say("Exchange {id}", id=hold.target)
            case "conversation":
                what = say("Conversation {id}", id=hold.target)
            case "person":
                what = say("All of {name}", name=names.get(hold.target, hold.target))
        return Row(key, (what, hold.reason, hold.by, hold.at, (Action("release", say("Release")),)))

    async def _act(self, action: str, key: str, value: str | None) -> None:
        hold = self.holds.get(key)
        if hold is None or not self.admin.may() or not await self.admin.noted("review.release", hold.target, hold.kind):
            return
        await self.desk.store.retention.release(hold.kind, hold.target)
        await self._show()


class Erasing:
    """One person's data, taken along as a file, or deleted: chosen, counted, confirmed by writing the name."""

    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        self.users: dict[str, User] = {}

    async def build(self) -> None:
        say = self.say
        self.users = {user.id: user for user in await self.desk.store.users.list()}
        heading(say("A person's data"), 2)
        ui.label(
            say("Erased, their exchanges and conversations go, with what reviewers wrote of them. The account stays.")
        ).classes("soft")
        with ui.element("div").classes("fields"):
            names = {id: user.name for id, user in self.users.items()}
            self.who = ui.select(names, label=say("Person"), on_change=self._choose)
            self.name = ui.input(say("The name again, to be sure")).props('autocomplete="off"')
        with ui.element("div").classes("buttons"):
            _button(say("Count"), self._count)
            _button(say("Erase"), self._erase, danger=True)
            self.file = ui.link(say("Export their data"), "#").props("download").classes("small-button")
            self.file.visible = False
        self.result = ui.label().props('role="status"')

    def _choose(self) -> None:
        """The file is a plain link, for the browser to save what is written while it is read."""
        self.file.props["href"] = f"/admin/people/export?person={self.who.value}"
        self.file.visible = True
        self.file.update()

    async def _count(self) -> None:
        user = self.users.get(str(self.who.value))
        if user is None or not self.admin.may():
            return
        due = await self.desk.store.erasures.plan(user.id)
        self.result.text = self.say(
            "{n} exchanges would be deleted; {held} are held or still running, and stay.",
            n=self.say.number(due.goes),
            held=self.say.number(due.held),
        )

    async def _erase(self) -> None:
        user = self.users.get(str(self.who.value))
        if user is None or not self.admin.may():
            return
        if str(self.name.value or "").strip() != user.name:
            self.admin.warn(self.say("Write the person's name into the second field."))
            return
        try:
            await end_answers(self.desk, user.id)  # before the audit trail says that it is done
            if not await self.admin.noted("user.erase", user.name):
                return
            count = await erase(self.desk, user.id)
        except StillAnswering:
            self.admin.warn(why_not_erased(self.say))
            return
        except Exception:
            logger.exception("a person's data could not be erased")
            self.admin.warn(self.say("That could not be finished. Try again in a moment."))
            return
        self.name.value = ""
        self.result.text = self.say("{n} are deleted, with all of their text.", n=self.say.number(count))


def kinds(say: Language) -> "dict[Kind, str]":
    return {"exchanges": say("Exchanges"), "audit": say("Audit trail"), "samples": say("Load samples")}


def _button(text: str, act: Callable[[], Awaitable[None]], *, main: bool = False, danger: bool = False) -> None:
    look = "unelevated" if main else "outline"
    button = ui.button(text, on_click=act).props(f"no-caps {look}").classes("plain")
    if danger:
        button.props("color=negative")
