"""The form of the limits: checked, set at once, kept over restarts, and written to the audit trail."""

from dataclasses import asdict

from nicegui import ui

from ui.i18n import Language
from ui.limits import LiveLimits, bounds, keep_limits, limits_now, limits_of, reset_limits
from ui.pages.admin.administrator import Administrator
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
                for name, label in _labels(say).items()
            }
        with ui.element("div").classes("buttons"):
            ui.button(say("Change the limits"), on_click=self._change).props("no-caps unelevated").classes("plain")
            ui.button(say("As in the settings"), on_click=self._reset).props("flat no-caps").classes("plain")

    async def _change(self) -> None:
        if not self.admin.may():
            return
        limits = self._read()
        if isinstance(limits, str):
            self.admin.warn(limits)
            return
        before = limits_now(self.desk.service)
        if await self.admin.noted("limits.change", detail=changes(before, limits)):
            await keep_limits(self.desk, limits)
            self._changed()

    async def _reset(self) -> None:
        if not self.admin.may():
            return
        before = limits_now(self.desk.service)
        if await self.admin.noted("limits.reset", detail=changes(before, limits_of(self.desk.settings))):
            await reset_limits(self.desk)
            self._changed()

    def _changed(self) -> None:
        for name, value in asdict(limits_now(self.desk.service)).items():
            self.fields[name].value = value
        self.admin.tell(self.say("The limits are changed."))

    def _read(self) -> LiveLimits | str:
        """What the fields say, or what is wrong with it."""
        labels, values = _labels(self.say), {}
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


def changes(before: LiveLimits, after: LiveLimits) -> str:
    """For the audit trail: "concurrent 10 → 4"."""
    old, new = asdict(before), asdict(after)
    return ", ".join(f"{name} {old[name]} → {new[name]}" for name in old if old[name] != new[name])


def _labels(say: Language) -> dict[str, str]:
    return {
        "concurrent": say("Running at once"),
        "waiting": say("Waiting at most"),
        "per_person": say("Of one person"),
        "max_new_tokens": say("Tokens of one answer"),
    }
