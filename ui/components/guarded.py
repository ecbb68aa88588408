"""The question before every handler of a page: is this person still signed in?"""

from collections.abc import Awaitable, Callable
from typing import Any

from nicegui.events import GenericEventArguments

from ui.auth import Visitor
from ui.desk import Desk

Fields = dict[str, Any]
Handler = Callable[[Fields], Awaitable[None]]


def guarded(desk: Desk, visitor: Visitor, handler: Handler) -> Callable[[GenericEventArguments], Awaitable[None]]:
    """The handler, called with what the browser sent, for as long as the session lives; other values are dropped."""

    async def handle(event: GenericEventArguments) -> None:
        if desk.auth.allowed(visitor) and isinstance(event.args, dict):
            await handler(event.args)

    return handle
