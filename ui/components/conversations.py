"""What people do with the list of their conversations: search, rename, pin, archive, put into folders, delete, restore.

Belongs to one open page; what it changes is shown on all of the person's pages.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from ui.auth import Visitor
from ui.components.hub import Hub
from ui.components.sidebar import Item, Sidebar, item
from ui.desk import Desk
from ui.elsewhere import elsewhere, stop
from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import Conversation

PAGE = 60  # conversations listed at first, and more each time
KEPT = 500  # listed at most of those that are pinned or in folders, and of the archived ones
LONGEST_TITLE = 200  # characters
LONGEST_FOLDER = 60

Fields = dict[str, Any]


class Conversations:
    def __init__(self, desk: Desk, hub: Hub, visitor: Visitor, sidebar: Sidebar, say: Language) -> None:
        self._desk, self._hub, self._sidebar = desk, hub, sidebar
        self._user_id, self._say = visitor.user.id, say
        self._limit = PAGE
        self._archive_open = False

    def handlers(self) -> list[tuple[str, Callable[[Fields], Awaitable[None]]]]:
        return [
            ("rename", self._rename),
            ("remove", self._remove),
            ("restore", self._restore),
            ("search", self._search),
            ("more", self._more),
            ("pin", self._pin),
            ("archive", self._archive),
            ("archived", self._show_archived),
            ("move", self._move),
            ("renameFolder", self._rename_folder),
        ]

    async def refresh(self) -> None:
        """Send the list anew."""
        store = self._desk.store.conversations
        kept = await store.list(self._user_id, limit=KEPT, shelf="kept")
        recent = await store.list(self._user_id, limit=self._limit, shelf="recent")
        self._sidebar.show(self._items(kept.items), self._items(recent.items), more=recent.next is not None)
        if self._archive_open:
            archived = await store.list(self._user_id, limit=KEPT, shelf="archived")
            self._sidebar.show_archived(self._items(archived.items))

    def _items(self, conversations: "list[Conversation]") -> list[Item]:
        busy = {job.request.conversation_id for job in self._desk.service.jobs.values()}
        return [item(conversation, running=conversation.id in busy) for conversation in conversations]

    async def _rename(self, fields: Fields) -> None:
        id, title = str(fields.get("id")), _line(fields.get("title"))[:LONGEST_TITLE]
        if title and await self._desk.store.conversations.rename(id, self._user_id, title):
            for view in self._hub.showing(id):
                view.renamed(title)
            await self._hub.list_changed(self._user_id)

    async def _remove(self, fields: Fields) -> None:
        """Delete, after which a running answer of it ends and pages that show it begin anew. Can be undone."""
        id = str(fields.get("id"))
        if not await self._desk.store.conversations.delete(id, self._user_id):
            return
        for job in list(self._desk.service.jobs.values()):
            if job.request.conversation_id == id:
                self._desk.service.stop_job(job)
        for row in await elsewhere(self._desk, self._user_id):
            if row.conversation_id == id:
                stop(self._desk, row.id)
        for view in self._hub.showing(id):
            await view.open("")
        self._sidebar.offer_undo("restore", id, self._say("Conversation deleted."))
        await self._hub.list_changed(self._user_id)

    async def _restore(self, fields: Fields) -> None:
        if await self._desk.store.conversations.restore(str(fields.get("id")), self._user_id):
            await self._hub.list_changed(self._user_id)

    async def _search(self, fields: Fields) -> None:
        text = str(fields.get("text", "")).strip()[:LONGEST_TITLE]
        hits = await self._desk.store.conversations.search(self._user_id, text) if text else []
        self._sidebar.found(text, [item(hit.conversation, query=text, snippet=hit.snippet) for hit in hits])

    async def _more(self, fields: Fields) -> None:
        self._limit += PAGE
        await self.refresh()

    async def _pin(self, fields: Fields) -> None:
        if await self._desk.store.conversations.pin(str(fields.get("id")), self._user_id, fields.get("on") is True):
            await self._hub.list_changed(self._user_id)

    async def _archive(self, fields: Fields) -> None:
        """Put it out of the list, where search still finds it; a page that shows it goes on to show it."""
        if await self._desk.store.conversations.archive(str(fields.get("id")), self._user_id, fields.get("on") is True):
            await self._hub.list_changed(self._user_id)

    async def _show_archived(self, fields: Fields) -> None:
        self._archive_open = fields.get("open") is True
        await self.refresh()

    async def _move(self, fields: Fields) -> None:
        folder = _line(fields.get("folder"))[:LONGEST_FOLDER]
        if await self._desk.store.conversations.move(str(fields.get("id")), self._user_id, folder):
            await self._hub.list_changed(self._user_id)

    async def _rename_folder(self, fields: Fields) -> None:
        name, to = str(fields.get("name", "")), _line(fields.get("to"))[:LONGEST_FOLDER]
        if await self._desk.store.conversations.rename_folder(self._user_id, name, to):
            await self._hub.list_changed(self._user_id)


def _line(text: object) -> str:
    """What was typed as one line without white space around it."""
    return " ".join(str(text or "").split())
