"""Puts all that programs see onto the server, after the pages: one file a surface."""

from ui.api import docs, faults, metrics, openai, ops, running, simple
from ui.desk import Desk


def register(desk: Desk, version: str) -> None:
    for surface in (simple, openai, running, ops, metrics):
        surface.register(desk)
    docs.register(version)
    faults.register()
