"""The frame of a dialog: a card with a title, by which a screen reader calls it. Knows nothing of what is asked."""

from collections.abc import Iterator
from contextlib import contextmanager

from nicegui import ui


@contextmanager
def titled(title: str = "") -> Iterator[tuple[ui.dialog, ui.label]]:
    """The closed dialog and its title, which may be set later; what is built in the block stands below it."""
    with ui.dialog() as dialog, ui.card().classes("dialog"):
        label = ui.label(title).classes("dialog-title")
        dialog.props(f"aria-labelledby={label.html_id}")
        yield dialog, label
