"""What the server holds of a person: take it along, see who read it, have it erased."""

from typing import TYPE_CHECKING

from nicegui import ui

from ui.components.account.parts import Owner, button, form, section, submit
from ui.components.moment import HERE, Moment
from ui.erasing import StillAnswering, end_answers, erase, request_erasure, why_not_erased

if TYPE_CHECKING:
    from storage.records import Reading

SHOWN = 50  # readings


class Readings:
    """Who opened this person's conversations in the log."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def build(self) -> None:
        say = self._owner.say
        section(
            say("Who read your conversations"),
            say("Reviewers and administrators may open what is logged. Each time is written down and shown here."),
        )
        readings = await self._owner.desk.store.audit.readings(self._owner.id, limit=SHOWN)
        with ui.element("div").classes("list readings"):
            if not readings:
                ui.label(say("Nobody so far.")).classes("soft")
            for reading in readings:
                self._row(reading)

    def _row(self, reading: "Reading") -> None:
        with ui.element("div").classes("row"):
            ui.label(reading.reader)
            ui.label(reading.title or reading.prompt).classes("main beginning")
            Moment(reading.at).classes("soft")


class Erasing:
    """Asking for the erasure of what one wrote, or erasing it, as the operator has set it."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._at_once = owner.desk.settings.self_erase == "now"

    async def build(self) -> None:
        say = self._owner.say
        section(say("Your data"))
        with ui.element("div").classes("buttons"):
            for text, address in (
                (say("Download all my conversations"), "/conversations/export"),
                (say("Download my account's data"), "/account/export"),
            ):
                ui.link(text, address).props("download").classes("plain-link")
        section(say("Erase what I wrote"), self._about())
        self._place = ui.element("div")
        await self._show()

    def _about(self) -> str:
        say = self._owner.say
        if self._at_once:
            return say(
                "It erases the text of all your questions and answers, your conversations, ratings and templates for "
                "good, here and in the log. That you asked, and when, stays. It cannot be undone."
            )
        return say(
            "Your conversations disappear from your pages at once, and cannot be brought back. The log keeps them "
            "until an administrator erases them, or they grow too old. That you asked, and when, stays in the log."
        )

    async def _show(self) -> None:
        say = self._owner.say
        waiting = {each.user_id: each for each in await self._owner.desk.store.erasures.waiting()}
        self._place.clear()
        with self._place:
            if asked := waiting.get(self._owner.id):
                Moment(asked.at, say("You asked for it on {when}. An administrator has to do it.", when=HERE))
                button(say("Ask no more"), self._withdraw)
                return
            with form(self._erase):
                self._name = ui.input(say("Type your name to confirm: {name}", name=self._owner.visitor.user.name))
                self._name.props('autocomplete="off" maxlength=64')
                submit(say("Erase what I wrote")).props("color=negative")

    async def _erase(self) -> None:
        owner, say = self._owner, self._owner.say
        if not owner.may():
            return
        if str(self._name.value or "").strip() != owner.visitor.user.name:
            owner.warn(say("That is not your name, so nothing was erased."))
            return
        try:
            await end_answers(owner.desk, owner.id)  # before the audit trail says anything of it
            await self._ask_or_erase()
        except StillAnswering:
            owner.warn(why_not_erased(say))
            return
        owner.tell(say("It is erased.") if self._at_once else say("Your conversations are gone from your pages."))
        await self._show()

    async def _ask_or_erase(self) -> None:
        desk, id, name = self._owner.desk, self._owner.id, self._owner.visitor.user.name
        await desk.store.audit.add(name, "erasure.request", name)
        if self._at_once:
            erased = await erase(desk, id)
            await desk.store.audit.add(name, "erasure.done", name, str(erased))
        else:
            await request_erasure(desk, id)

    async def _withdraw(self) -> None:
        if self._owner.may():
            name = self._owner.visitor.user.name
            await self._owner.desk.store.erasures.withdraw(self._owner.id)
            await self._owner.desk.store.audit.add(name, "erasure.withdraw", name)
            await self._show()
