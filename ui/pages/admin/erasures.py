"""Who asks that what they wrote be erased, and erasing it. Shown only while somebody asks. All of it is audited."""

from typing import TYPE_CHECKING

from nicegui import ui

from ui.components.account.parts import button
from ui.components.dialogs import titled
from ui.components.moment import Moment
from ui.erasing import StillAnswering, end_answers, erase, why_not_erased
from ui.pages.admin.administrator import Administrator
from ui.theme import heading

if TYPE_CHECKING:
    from storage.records import Erasure


class Erasures:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        self.subject: Erasure | None = None

    async def build(self) -> None:
        say = self.say
        self.place = ui.element("div")
        with titled() as (self.dialog, self.title):
            ui.label(
                say(
                    "The text of all their questions and answers goes for good, from the log and from its search. What "
                    "is running for them ends. Numbers and times stay. It cannot be undone."
                )
            ).classes("soft")
            with ui.element("div").classes("dialog-buttons"):
                ui.button(say("Back"), on_click=self.dialog.close).props("flat no-caps")
                ui.button(say("Erase for good"), on_click=self._erase).props("no-caps unelevated color=negative")
        await self._show()

    async def _show(self) -> None:
        waiting = await self.desk.store.erasures.waiting()
        self.place.clear()
        with self.place:
            if waiting:
                heading(self.say("Requests for erasure"), 2)
            for asked in waiting:
                self._row(asked)

    def _row(self, asked: "Erasure") -> None:
        async def ask() -> None:
            self.subject = asked
            self.title.text = self.say("Erase what {name} wrote?", name=asked.user_name)
            self.dialog.open()

        with ui.element("div").classes("list"), ui.element("div").classes("row"):
            ui.label(asked.user_name).classes("main")
            Moment(asked.at).classes("soft")
            button(self.say("Erase"), ask, of=asked.user_name).props("color=negative")

    async def _erase(self) -> None:
        if not self.admin.may() or (asked := self.subject) is None:
            return
        self.dialog.close()
        if asked.user_id not in {each.user_id for each in await self.desk.store.erasures.waiting()}:
            self.admin.warn(self.say("{name} asks for it no more, so nothing was erased.", name=asked.user_name))
        else:
            await self._erase_all(asked)
        await self._show()

    async def _erase_all(self, asked: "Erasure") -> None:
        try:
            await end_answers(self.desk, asked.user_id)  # before the audit trail says that it is done
            if await self.admin.noted("erasure.done", asked.user_name):
                await erase(self.desk, asked.user_id)
                self.admin.tell(self.say("What {name} wrote is erased.", name=asked.user_name))
        except StillAnswering:
            self.admin.warn(why_not_erased(self.say))
