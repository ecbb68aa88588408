"""What programs see. One file a surface; `register` puts them all onto the server, after the pages."""

from ui.api import docs, faults, metrics, openai, ops, running, simple
from ui.desk import Desk


def register(desk: Desk, version: str) -> None:
    for surface in (simple, openai, running, ops, metrics):
        surface.register(desk)
    docs.register(version)
    faults.register()
