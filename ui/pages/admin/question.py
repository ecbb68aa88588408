"""A dialog that asks an administrator before something is done to somebody, and why."""

from collections.abc import Awaitable, Callable

from nicegui import ui

from ui.components.dialogs import titled
from ui.pages.admin.administrator import Administrator

LONGEST = 200  # characters of a reason

Answered = Callable[[str], Awaitable[None]]


class ReasonDialog:
    """One dialog for all the rows of a table."""

    def __init__(self, admin: Administrator) -> None:
        self.admin, say = admin, admin.say
        self._answered: Answered | None = None
        with titled() as (self.dialog, self.title):
            self.about = ui.label().classes("soft")
            self.reason = ui.input(say("Reason")).props(f'maxlength={LONGEST} autofocus autocomplete="off"')
            self.reason.on("keydown.enter", self._confirm)
            ui.label(say("It is kept in the audit trail.")).classes("soft")
            with ui.element("div").classes("dialog-buttons"):
                ui.button(say("Back"), on_click=self.dialog.close).props("flat no-caps")
                self.confirm = ui.button(on_click=self._confirm).props("no-caps unelevated")

    def ask(self, title: str, about: str, confirm: str, answered: Answered) -> None:
        """Open; `answered` gets the reason, which is not empty."""
        self._answered = answered
        self.title.text, self.about.text, self.confirm.text = title, about, confirm
        self.reason.value = ""
        self.dialog.open()

    async def _confirm(self) -> None:
        reason = str(self.reason.value or "").strip()[:LONGEST]
        if not reason:
            self.admin.warn(self.admin.say("Please give a reason."))
            return
        answered, self._answered = self._answered, None
        self.dialog.close()
        if answered and self.admin.may():
            await answered(reason)


class RequestQuestion(ReasonDialog):
    """Before somebody's request is cancelled or moved, in whichever process it is."""

    def cancel(self, name: str, answered: Answered) -> None:
        say = self.admin.say
        about = say("The answer so far is kept; the person reads that an administrator ended it.")
        self.ask(say("Cancel the request of {name}?", name=name), about, say("Cancel the request"), answered)

    def to_front(self, name: str, answered: Answered) -> None:
        say = self.admin.say
        about = say("It is the next to run; everybody else waits one place longer.")
        self.ask(say("Move the request of {name} to the front?", name=name), about, say("Move it"), answered)
