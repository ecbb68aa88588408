"""The list of one's conversations, with search, rename, and delete that can be undone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from nicegui.element import Element

from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import Conversation


class Item(TypedDict):
    id: str
    title: str
    updated_ms: float  # since the epoch; the browser tells the days apart by its own clock
    running: bool
    snippet: str


def item(conversation: "Conversation", *, running: bool = False, snippet: str = "") -> Item:
    updated = conversation.updated_at.timestamp() * 1000
    return Item(id=conversation.id, title=conversation.title, updated_ms=updated, running=running, snippet=snippet)


class Sidebar(Element, component="sidebar.js"):
    """Emits open {id} ("" is a new one), rename {id, title}, remove {id}, restore {id}, restoreTurn {id}, search
    {text} and more."""

    def __init__(self, say: Language, name: str, links: Sequence[tuple[str, str]], form_token: str) -> None:
        super().__init__()
        self._props["texts"] = _texts(say)
        self._props["name"] = name
        self._props["links"] = [{"href": href, "text": text} for href, text in links]
        self._props["form-token"] = form_token

    def show(self, items: list[Item], *, more: bool) -> None:
        self.run_method("show", {"items": items, "more": more})

    def found(self, query: str, items: list[Item]) -> None:
        self.run_method("found", {"query": query, "items": items})

    def select(self, conversation_id: str) -> None:
        self.run_method("select", conversation_id)

    def offer_undo(self, event: str, id: str, text: str) -> None:
        """Say what was done, and offer for a while to emit this event with this id."""
        self.run_method("offerUndo", {"event": event, "id": id, "text": text})


def _texts(say: Language) -> dict[str, str]:
    return {
        "conversations": say("Conversations"),
        "newChat": say("New chat"),
        "search": say("Search"),
        "nothingFound": say("Nothing found."),
        "noneYet": say("Your conversations will be listed here."),
        "today": say("Today"),
        "yesterday": say("Yesterday"),
        "week": say("Last 7 days"),
        "older": say("Older"),
        "more": say("Show more"),
        "rename": say("Rename"),
        "remove": say("Delete"),
        "undo": say("Undo"),
        "answering": say("An answer is on its way"),
        "close": say("Close"),
        "signOut": say("Sign out"),
    }
