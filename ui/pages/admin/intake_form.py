"""Pausing, draining and resuming: what people read meanwhile, and what becomes of those who are inside."""

from nicegui import ui

from engine.intake import Mode
from engine.monitor import Sample
from ui.engine_words import in_words
from ui.pages.admin.administrator import Administrator
from ui.steering import LONGEST, set_intake
from ui.theme import heading


class IntakeForm:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        say = self.say
        heading(say("Intake"), 2)
        self.now = ui.label().classes("soft")
        with ui.element("div").classes("fields one"):
            self.note = ui.input(say("What people read meanwhile")).props(f'maxlength={LONGEST} autocomplete="off"')
        with ui.element("div").classes("buttons"):
            self.pause = self._button(say("Pause"), "paused").props("outline")
            self.drain = self._button(say("Drain"), "draining").props("outline")
            self.resume = self._button(say("Resume"), "open").props("unelevated")
        with ui.element("ul").classes("soft hints"):
            for hint in (
                say("Pause: what is new is refused with your words, also after a restart."),
                say("Drain: what is new is refused until a restart; this page says when nothing is left."),
                say("Who runs or waits already is answered in any case."),
            ):
                _item(hint)
        self.note.value = self.desk.service.intake.note
        self._show(self.desk.monitor.now)
        admin.client.on_delete(self.desk.monitor.watch(self._show))

    def _button(self, text: str, mode: Mode) -> ui.button:
        async def press() -> None:
            await self._steer(mode)

        return ui.button(text, on_click=press).props("no-caps").classes("plain")

    def _show(self, sample: Sample) -> None:
        mode, (state, reason) = self.desk.service.intake.mode, self.desk.service.state()
        inside = sample.running + sample.waiting
        if mode == "open":
            self.now.text = self.say("Requests are taken.")
        elif inside:
            self.now.text = self.say("New requests are refused; {n} are still inside.", n=inside)
        else:
            self.now.text = in_words(self.say, reason) if state == "draining" else self.say("New requests are refused.")
        self.pause.visible, self.drain.visible = mode != "paused", mode != "draining"
        self.resume.visible = mode != "open"

    async def _steer(self, mode: Mode) -> None:
        if not self.admin.may():
            return
        note = "" if mode == "open" else str(self.note.value or "").strip()[:LONGEST]
        action = {"open": "intake.resume", "paused": "intake.pause", "draining": "intake.drain"}[mode]
        if await self.admin.noted(action, detail=note):
            await set_intake(self.desk, mode, note)
            if mode == "open":
                self.note.value = ""
            self._show(self.desk.monitor.now)
            self.admin.state.show(self.desk.monitor.now)


def _item(text: str) -> None:
    with ui.element("li"):
        ui.label(text)
