"""Where a person is signed in: which device, when last seen, and signing out of each or of all others."""

import re
from typing import TYPE_CHECKING

from nicegui import ui

from ui.components.account.parts import Owner, button, section
from ui.components.moment import HERE, Moment
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import Session

# What a browser's own name for itself holds, first match first: others call themselves Chrome and Safari as well.
BROWSERS = {
    "Edg|EdgA|EdgiOS": "Edge",
    "OPR": "Opera",
    "Firefox|FxiOS": "Firefox",
    "Chromium": "Chromium",
    "(Headless)?Chrome|CriOS": "Chrome",
    "Safari": "Safari",
}
SYSTEMS = {
    "iPhone|iPad": "iOS",
    "Android": "Android",
    "Windows": "Windows",
    "Macintosh": "macOS",
    "CrOS": "ChromeOS",
    "Linux": "Linux",
}


def device(agent: str, say: Language) -> str:
    """A browser's own name for itself in words: "Firefox on Windows"; of a program, its name without the version."""
    browser = next((name for mark, name in BROWSERS.items() if re.search(rf"\b({mark})/", agent)), "")
    system = next((name for mark, name in SYSTEMS.items() if re.search(mark, agent)), "")
    if browser and system:
        return say("{browser} on {system}", browser=browser, system=system)
    program = re.match(r"[\w.-]+(?=/\d)", agent)
    return browser or (program[0] if program else agent) or say("A program")


class Sessions:
    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    async def build(self) -> None:
        say = self._owner.say
        section(say("Where you are signed in"))
        self._list = ui.element("div").classes("list")
        with ui.element("div").classes("buttons"):
            self._elsewhere = button(say("Sign out everywhere else"), self._sign_out_elsewhere)
            button(say("Sign out everywhere"), self._sign_out_everywhere).props("color=negative")
        await self.show()

    async def show(self) -> None:
        sessions = await self._owner.desk.store.sessions.list(self._owner.id)
        self._list.clear()
        with self._list:
            for session in sessions:
                self._row(session)
        self._elsewhere.set_visibility(len(sessions) > 1)

    def _row(self, session: "Session") -> None:
        say = self._owner.say
        name = device(session.agent, say)
        here = session.id == self._owner.visitor.session_id
        with ui.element("div").classes("row"):
            ui.label(name).classes("main").tooltip(session.agent)
            Moment(session.created_at, say("since {when}", when=HERE)).classes("soft")
            seen = ui.label(say("here, now")) if here else Moment(session.last_seen_at, say("seen {when}", when=HERE))
            seen.classes("soft")
            button(say("Sign out"), lambda: self._end(session.id), of=name)

    async def _end(self, session_id: str) -> None:
        own = {session.id for session in await self._owner.desk.store.sessions.list(self._owner.id)}
        if self._owner.may() and session_id in own:
            await self._owner.desk.auth.sign_out(session_id)
            await self.show()

    async def _sign_out_elsewhere(self) -> None:
        if self._owner.may():
            await self._owner.desk.auth.sign_out_elsewhere(self._owner.visitor)
            await self.show()

    async def _sign_out_everywhere(self) -> None:
        if self._owner.may():
            await self._owner.desk.auth.sign_out_everywhere(self._owner.id)
