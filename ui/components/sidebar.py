"""The list of one's conversations: by day, with pins, folders, an archive, search, and delete that can be undone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

from nicegui.element import Element

from ui.components.highlight import Piece, marked
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import Conversation


class Item(TypedDict):
    id: str
    title: str
    updated_ms: float  # since the epoch; the browser tells the days apart by its own clock
    running: bool
    pinned: bool
    folder: str
    archived: bool
    marked_title: list[Piece]  # of a search: what was looked for is marked
    snippet: list[Piece]


def item(conversation: "Conversation", *, running: bool = False, query: str = "", snippet: str = "") -> Item:
    return Item(
        id=conversation.id,
        title=conversation.title,
        updated_ms=conversation.updated_at.timestamp() * 1000,
        running=running,
        pinned=conversation.pinned,
        folder=conversation.folder,
        archived=conversation.archived,
        marked_title=marked(conversation.title, query) if query else [],
        snippet=marked(snippet, query),
    )


class Sidebar(Element, component="sidebar.js", esm={"qdesk-list": "list"}):
    """Emits open {id} ("" is a new one), rename {id, title}, remove {id}, restore {id}, restoreTurn {id}, pin {id, on},
    archive {id, on}, move {id, folder}, renameFolder {name, to}, archived {open}, search {text} and more."""

    def __init__(self, say: Language, name: str, links: Sequence[tuple[str, str]], form_token: str) -> None:
        super().__init__()
        self._props["texts"] = _texts(say)
        self._props["name"] = name
        self._props["links"] = [{"href": href, "text": text} for href, text in links]
        self._props["form-token"] = form_token

    def show(self, kept: list[Item], recent: list[Item], *, more: bool) -> None:
        """The whole list: what is pinned or in a folder, and the others as far as they were asked for."""
        self.run_method("show", {"kept": kept, "items": recent, "more": more})

    def show_archived(self, items: list[Item]) -> None:
        self.run_method("showArchived", items)

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
        "found": say("{n} found"),
        "options": say("Options"),
        "pinned": say("Pinned"),
        "pin": say("Pin"),
        "unpin": say("Unpin"),
        "archive": say("Archive"),
        "unarchive": say("Take out of the archive"),
        "archived": say("Archived"),
        "noneArchived": say("Nothing is archived."),
        "back": say("Back to the list"),
        "move": say("Move to a folder"),
        "folder": say("Folder"),
        "folderHint": say("A new name makes a new folder. Empty: in no folder."),
        "renameFolder": say("Rename this folder"),
        "exportMarkdown": say("Export as Markdown"),
        "exportJson": say("Export as JSON"),
        "import": say("Import"),
        "importing": say("Importing…"),
        "imported": say("Conversations imported: {n}"),
        "notImported": say("Nothing was imported"),
        "failed": say("That did not work. Please try again."),
        "cancel": say("Cancel"),
        "save": say("Save"),
        "rename": say("Rename"),
        "remove": say("Delete"),
        "undo": say("Undo"),
        "answering": say("An answer is on its way"),
        "close": say("Close"),
        "signOut": say("Sign out"),
    }
