"""The API to read and to try: operations that open, with their fields, a form that asks for real, and the answer.

Asking is the browser's own doing, with the key that stands in its field or else as whoever is signed in: a key never
comes here. What there is to show is ui/api/reference.py's part.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from nicegui.element import Element

from ui.i18n import Language

if TYPE_CHECKING:
    from ui.api.reference import Group


class ApiReference(Element, component="api_reference.js"):
    def __init__(self, say: Language, about: Sequence[str], groups: "Sequence[Group]") -> None:
        """`about`: paragraphs; what stands between backticks in any text is shown as code."""
        super().__init__()
        self._props["about"], self._props["groups"] = about, [asdict(group) for group in groups]
        self._props["texts"] = {
            "key": say("API key"),
            "keyHint": say("Stays in this page. Without one, reading works by your session."),
            "makeKey": say("Make a key"),
            "document": say("OpenAPI document"),
            "open": say("Needs no key."),
            "try": say("Try it"),
            "body": say("Body (JSON)"),
            "send": say("Send"),
            "stop": say("Stop"),
            "command": say("The same in a shell"),
            "copy": say("Copy"),
            "copied": say("Copied"),
            "asking": say("Waiting for the answer …"),
            "answer": say("Answer"),
            "answered": say("{status} after {seconds} s"),
            "stopped": say("Stopped."),
            "failed": say("The server could not be reached."),
            "path": say("In the path"),
            "header": say("Headers"),
            "fields": say("Fields of the body"),
            "answerFields": say("Fields of the answer"),
            "replies": say("Status"),
            "required": say("required"),
        }
