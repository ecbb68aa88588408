"""The administrator who looks at one of the admin pages: may they still, and what they do is written down.

with administration(desk, active="/admin/people") as admin:
    ...
if admin.may():                                                   every handler asks first
if await admin.noted("request.cancel", job.id):                   False: it could not be written, so leave it
"""

from collections.abc import Iterator
from contextlib import contextmanager

from loguru import logger
from nicegui import ui

from ui.access import Right
from ui.auth import Visitor
from ui.desk import Desk
from ui.i18n import Language
from ui.pages.admin.state import StateLine
from ui.theme import frame, heading, page_visitor, say_for, styles


class Administrator:
    def __init__(self, desk: Desk, visitor: Visitor, say: Language, state: StateLine) -> None:
        self.desk, self.visitor, self.say, self.state = desk, visitor, say, state
        self.client = ui.context.client

    @property
    def name(self) -> str:
        return self.visitor.user.name

    def may(self) -> bool:
        """Whether this is still an administrator; whoever is not any more is led away."""
        if self.desk.auth.allowed(self.visitor, Right.ADMINISTER):
            return True
        self.client.open("/")
        return False

    async def noted(self, action: str, target: str = "", detail: str = "", *, afterwards: bool = False) -> bool:
        """Write to the audit trail. Where that fails the administrator is told, and nothing more may be done.

        `afterwards`: it is done already, since only doing it could tell whether it may be done.
        """
        try:
            await self.desk.store.audit.add(self.name, action, target, detail)
        except Exception as error:
            logger.error("{} by {} is not in the audit trail: {!r}", action, self.name, error)
            done = self.say("This is done, but it could not be written to the audit trail.")
            self.warn(done if afterwards else self.say("The audit trail cannot be written, so nothing was done."))
            return False
        return True

    def tell(self, text: str) -> None:
        with self.client:
            ui.notify(text, type="positive", position="top")

    def warn(self, text: str) -> None:
        with self.client:
            ui.notify(text, type="negative", position="top")


@contextmanager
def administration(desk: Desk, *, active: str) -> Iterator[Administrator]:
    """Frame one of the admin pages, with the way to the others."""
    visitor = page_visitor()
    say = say_for(visitor, ui.context.client.request)
    parts = {
        "/admin": say("Now"),
        "/admin/steer": say("Steer"),
        "/admin/history": say("Over time"),
        "/admin/people": say("People"),
        "/admin/model": say("Model"),
        "/admin/audit": say("Audit trail"),
        "/review/retention": say("Retention"),
    }
    styles("admin.css")
    with frame(desk, visitor, title=say("Server"), active="/admin") as column:
        column.classes("admin")
        heading(say("Server"), 1)
        with ui.element("nav").classes("parts").props(f'aria-label="{say("Server")}"'):
            for address, text in parts.items():
                link = ui.link(text, address)
                if address == active:
                    link.props("aria-current=page")
        yield Administrator(desk, visitor, say, StateLine(desk, say))
