"""What people do with the list of their conversations: search, rename, delete, restore, for all of their open pages."""

from collections.abc import Awaitable, Callable
from typing import Any

from ui.auth import Visitor
from ui.components.hub import Hub
from ui.components.sidebar import Sidebar, item
from ui.desk import Desk
from ui.i18n import Language

PAGE = 60  # conversations listed at first, and more each time
LONGEST_TITLE = 200  # characters

Fields = dict[str, Any]


class Conversations:
    def __init__(self, desk: Desk, hub: Hub, visitor: Visitor, sidebar: Sidebar, say: Language) -> None:
        self._desk, self._hub, self._sidebar = desk, hub, sidebar
        self._user_id, self._say = visitor.user.id, say
        self._limit = PAGE

    def handlers(self) -> list[tuple[str, Callable[[Fields], Awaitable[None]]]]:
        return [
            ("rename", self._rename),
            ("remove", self._remove),
            ("restore", self._restore),
            ("search", self._search),
            ("more", self._more),
        ]

    async def refresh(self) -> None:
        """Send the list anew."""
        page = await self._desk.store.conversations.list(self._user_id, limit=self._limit)
        busy = {job.request.conversation_id for job in self._desk.service.jobs.values()}
        items = [item(conversation, running=conversation.id in busy) for conversation in page.items]
        self._sidebar.show(items, more=page.next is not None)

    async def _rename(self, fields: Fields) -> None:
        id, title = str(fields.get("id")), " ".join(str(fields.get("title", "")).split())[:LONGEST_TITLE]
        if title and await self._desk.store.conversations.rename(id, self._user_id, title):
            for view in self._hub.showing(id):
                view.renamed(title)
            await self._refresh_all()

    async def _remove(self, fields: Fields) -> None:
        """Delete, after which a running answer of it ends and pages that show it begin anew. Can be undone."""
        id = str(fields.get("id"))
        if not await self._desk.store.conversations.delete(id, self._user_id):
            return
        for job in list(self._desk.service.jobs.values()):
            if job.request.conversation_id == id:
                self._desk.service.stop_job(job)
        for view in self._hub.showing(id):
            await view.open("")
        self._sidebar.offer_undo("restore", id, self._say("Conversation deleted."))
        await self._refresh_all()

    async def _restore(self, fields: Fields) -> None:
        if await self._desk.store.conversations.restore(str(fields.get("id")), self._user_id):
            await self._refresh_all()

    async def _search(self, fields: Fields) -> None:
        text = str(fields.get("text", "")).strip()[:LONGEST_TITLE]
        hits = await self._desk.store.conversations.search(self._user_id, text) if text else []
        self._sidebar.found(text, [item(hit.conversation, snippet=hit.snippet) for hit in hits])

    async def _more(self, fields: Fields) -> None:
        self._limit += PAGE
        await self.refresh()

    async def _refresh_all(self) -> None:
        for view in self._hub.of(self._user_id):
            await view.list.refresh()
