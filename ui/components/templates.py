"""Prompt templates in the chat: `/` in an empty message lists them, choosing one fills the box.

What stands in {{double braces}} is selected to be typed over. The browser filters; the list is sent anew each time.
"""

from typing import TYPE_CHECKING, Any

from nicegui.element import Element

from ui.components.guarded import guarded
from ui.desk import Desk
from ui.i18n import Language

if TYPE_CHECKING:
    from ui.auth import Visitor


class Templates(Element, component="templates.js"):
    """Emits opened; listens to the box to write in by itself."""

    def __init__(self, desk: Desk, visitor: "Visitor", say: Language) -> None:
        super().__init__()
        self._desk, self._user_id = desk, visitor.user.id
        self._props["texts"] = {
            "title": say("Prompt templates"),
            "none": say("No templates yet."),
            "make": say("Make one on the account page"),
            "shared": say("shared"),
            "found": say("{n} templates. Up and down arrows choose, Enter inserts, Escape closes."),
        }
        self.on("opened", guarded(desk, visitor, self._send))

    async def _send(self, _: dict[str, Any]) -> None:
        listed = await self._desk.store.templates.list(self._user_id)
        self.run_method(
            "show", [{"id": one.id, "name": one.name, "text": one.text, "shared": one.shared} for one in listed]
        )
