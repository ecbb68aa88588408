"""The form of the limits: checked, previewed, set at once, kept over restarts, and written to the audit trail."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict

from nicegui import ui

from ui.components.dialogs import titled
from ui.limits import LiveLimits, bounds, keep_limits, limits_now, limits_of, reset_limits
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.audit_words import limits as labels_of
from ui.pages.admin.preview import preview
from ui.theme import heading


class LimitsForm:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        say = self.say
        heading(say("Limits"), 2)
        ui.label(say("They hold at once and over restarts. Nobody who is inside is put out.")).classes("soft")
        limits = asdict(limits_now(self.desk.service))
        with ui.element("div").classes("fields four"):
            self.fields = {
                name: ui.number(label, value=limits[name], format="%d").props('inputmode="numeric"').mark(name)
                for name, label in labels_of(say).items()
            }
        with ui.element("div").classes("buttons"):
            ui.button(say("Change the limits…"), on_click=self._change).props("no-caps unelevated").classes("plain")
            ui.button(say("As in the settings…"), on_click=self._reset).props("flat no-caps").classes("plain")
        self._apply: Callable[[], Awaitable[None]] | None = None
        self._preview()

    # --- what would change, before it does ---

    def _preview(self) -> None:
        with titled(self.say("Change the limits?")) as (self.dialog, _):
            self.changes = ui.label().classes("changes")
            self.effects = ui.element("ul").classes("effects")
            with ui.element("div").classes("dialog-buttons"):
                ui.button(self.say("Back"), on_click=self.dialog.close).props("flat no-caps")
                ui.button(self.say("Apply"), on_click=self._confirmed).props("no-caps unelevated")

    async def _change(self) -> None:
        if not self.admin.may():
            return
        limits = self._read()
        if isinstance(limits, str):
            self.admin.warn(limits)
            return

        async def apply() -> None:
            before = limits_now(self.desk.service)
            if await self.admin.noted("limits.change", detail=changes(before, limits)):
                await keep_limits(self.desk, limits)
                self._changed()

        await self._ask(limits, apply)

    async def _reset(self) -> None:
        if not self.admin.may():
            return
        limits = limits_of(self.desk.settings)

        async def apply() -> None:
            before = limits_now(self.desk.service)
            if await self.admin.noted("limits.reset", detail=changes(before, limits)):
                await reset_limits(self.desk)
                self._changed()

        await self._ask(limits, apply)

    async def _ask(self, limits: LiveLimits, apply: Callable[[], Awaitable[None]]) -> None:
        """Say what would change for whom; `apply` is done when that is confirmed."""
        names = {user.id: user.name for user in await self.desk.store.users.list()}
        gate, before = self.desk.service.gate, limits_now(self.desk.service)
        self._apply = apply
        self.changes.text = self._in_words(before, limits)
        self.effects.clear()
        with self.effects:
            for sentence in preview(self.say, gate, before, limits, names, time.monotonic()):
                with ui.element("li"):
                    ui.label(sentence)
        self.dialog.open()

    async def _confirmed(self) -> None:
        apply, self._apply = self._apply, None
        self.dialog.close()
        if apply and self.admin.may():
            await apply()

    def _changed(self) -> None:
        for name, value in asdict(limits_now(self.desk.service)).items():
            self.fields[name].value = value
        self.admin.tell(self.say("The limits are changed."))

    # --- what the fields say ---

    def _read(self) -> LiveLimits | str:
        """What the fields say, or what is wrong with it."""
        labels, values = labels_of(self.say), {}
        for name, (least, most) in bounds(self.desk.service).items():
            value = self.fields[name].value
            if not isinstance(value, int | float) or value != int(value) or not least <= value <= most:
                return self.say(
                    "{label}: please give a whole number from {least} to {most}.",
                    label=labels[name],
                    least=least,
                    most=most,
                )
            values[name] = int(value)
        return LiveLimits(**values)

    def _in_words(self, before: LiveLimits, after: LiveLimits) -> str:
        old, new, say = asdict(before), asdict(after), self.say
        changed = [(label, old[name], new[name]) for name, label in labels_of(say).items() if old[name] != new[name]]
        return say(", ").join(f"{label} {say.number(was)} → {say.number(becomes)}" for label, was, becomes in changed)


def changes(before: LiveLimits, after: LiveLimits) -> str:
    """For the audit trail: "concurrent 10 → 4"."""
    old, new = asdict(before), asdict(after)
    return ", ".join(f"{name} {old[name]} → {new[name]}" for name in old if old[name] != new[name])
