"""A moment on a page. The server knows what time it is; only the browser knows what time that is for its reader."""

from datetime import datetime

from nicegui.element import Element

HERE = "{when}"  # stands for the moment in a sentence


class Moment(Element, component="moment.js"):
    """`text` with the moment in place of HERE, in the reader's time zone. `when` is in UTC, as it is stored."""

    def __init__(self, when: datetime, text: str = HERE) -> None:
        super().__init__()
        self._props["text"], self._props["at"] = text, when.isoformat()
