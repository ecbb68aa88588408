"""Puts all that programs see onto the server, after the pages: one file a surface."""

from ui.api import completions, docs, faults, metrics, openai, ops, running, simple, tokens
from ui.api.calls import Calls
from ui.desk import Desk


def register(desk: Desk, version: str) -> None:
    calls = Calls(desk)
    for asking in (simple, openai, completions, tokens):
        asking.register(desk, calls)
    for watching in (running, ops, metrics):
        watching.register(desk)
    docs.register(desk, version)
    faults.register()
