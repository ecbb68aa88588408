"""What NiceGUI leaves of a page that is gone: taken apart at once, instead of waiting for the garbage collector.

A page is about a thousand objects, and NiceGUI leaves some in circles: a list of classes calls itself when it changes,
and a client's handlers hold the client. Everything else hangs on these. Python frees circles only when it looks for
garbage among everything, which stops a busy process for most of a second (docs/performance.md, "What made the event
loop late").
"""

import asyncio
from collections.abc import Callable

from nicegui import Client, app, ui

STILL_RUNNING_S = 60.0  # whatever a page had under way when it went has ended by then


def take_pages_apart() -> None:
    """From now on, every page that goes."""
    app.on_delete(lambda: _take_apart(ui.context.client))


def later(forget: Callable[[], object]) -> None:
    """Call this when nothing of a page that goes now runs any more."""
    asyncio.get_running_loop().call_later(STILL_RUNNING_S, forget)


def _take_apart(client: Client) -> None:
    for element in client.elements.values():
        for values in (element.classes, element.style, element.props):
            values._change_handlers.clear()
    asyncio.get_running_loop().call_soon(_forget_handlers, client)


def _forget_handlers(client: Client) -> None:
    """Once all of them have been called for the last time."""
    for handlers in (client.connect_handlers, client.disconnect_handlers, client.delete_handlers):
        handlers.clear()
