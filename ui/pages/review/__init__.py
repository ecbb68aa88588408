"""The reviewers' pages: the inbox (/review), its exports, and for administrators how long the log is kept."""

from ui.components.review import download
from ui.desk import Desk
from ui.pages.review import page, retention


def register(desk: Desk) -> None:
    for part in (page, download, retention):
        part.register(desk)
