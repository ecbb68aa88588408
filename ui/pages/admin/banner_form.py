"""The form of the banner on every page: what it says, how loud, for how long."""

from datetime import UTC, datetime, timedelta

from nicegui import ui

from ui.banner import LONGEST, Banner, Level, keep_banner
from ui.i18n import Language
from ui.pages.admin.administrator import Administrator
from ui.theme import heading

LEVELS: tuple[Level, ...] = ("info", "warn", "bad")


class BannerForm:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        say, now = self.say, admin.desk.board.now
        heading(say("Banner on every page"), 2)
        with ui.element("div").classes("fields banner-fields"):
            self.text = ui.input(say("Text"), value=now.text if now else "")
            self.text.props(f'maxlength={LONGEST} autocomplete="off"').classes("long")
            self.level = ui.select(_levels(say), value=now.level if now else "info", label=say("Level"))
            self.hours = ui.select(_hours(say), value=0, label=say("For how long"))
        with ui.element("div").classes("buttons"):
            ui.button(say("Show it"), on_click=self._put_up).props("no-caps unelevated").classes("plain")
            ui.button(say("Take it down"), on_click=self._take_down).props("flat no-caps").classes("plain")

    async def _put_up(self) -> None:
        if not self.admin.may():
            return
        text = str(self.text.value or "").strip()[:LONGEST]
        if not text:
            self.admin.warn(self.say("Please write what the banner says."))
            return
        level = next((level for level in LEVELS if level == self.level.value), LEVELS[0])
        hours = self.hours.value if self.hours.value in _hours(self.say) else 0
        until = datetime.now(UTC) + timedelta(hours=hours) if hours else None
        ends = f", until {until:%Y-%m-%d %H:%M} UTC" if until else ""
        if await self.admin.noted("banner.show", detail=f"{level}{ends}: {text}"):
            await keep_banner(self.desk, Banner(text, level, until))

    async def _take_down(self) -> None:
        if self.admin.may() and await self.admin.noted("banner.hide"):
            await keep_banner(self.desk, None)
            self.text.value = ""


def _levels(say: Language) -> dict[Level, str]:
    return {"info": say("Information"), "warn": say("Warning"), "bad": say("Trouble")}


def _hours(say: Language) -> dict[float, str]:
    return {
        0: say("until I take it down"),
        0.25: say("{n} minutes", n=15),
        1: say("1 hour"),
        4: say("{n} hours", n=4),
        24: say("1 day"),
        168: say("1 week"),
    }
