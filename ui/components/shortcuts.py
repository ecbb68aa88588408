"""The list of keyboard shortcuts of the chat page, which can be turned off. Everything happens in the browser."""

from nicegui.element import Element

from ui.i18n import Language


class Shortcuts(Element, component="shortcuts.js"):
    def __init__(self, say: Language) -> None:
        super().__init__()
        self._props["texts"] = {
            "title": say("Keyboard shortcuts"),
            "use": say("Use keyboard shortcuts"),
            "always": say("Enter and Shift+Enter always work. The choice is kept in this browser."),
            "close": say("Close"),
        }
        self._props["keys"] = [
            ("Enter", say("Send the message")),
            ("Shift+Enter", say("Start a new line")),
            ("Esc", say("Stop the answer")),
            ("↑", say("Edit the last message, from the empty box")),
            ("Ctrl+Shift+O", say("New chat")),
            ("Ctrl+K", say("Search conversations")),
            ("?", say("Show this list, outside of a text box")),
        ]
