"""The chat page: `/` for a new conversation, `/c/{id}` for one of one's own.

One ChatView a page load stands between the components in the browser, the service and the store. It keeps nothing that
cannot be read again: answers belong to jobs, conversations to the store. Every handler asks who is there before it acts.
"""

from nicegui import background_tasks, ui
from nicegui.element import Element

from ui.components.chat_view import ChatView
from ui.components.composer import Composer
from ui.components.hub import Hub
from ui.components.preferences import Preferences
from ui.components.sidebar import Sidebar
from ui.components.styles import chat_styles
from ui.components.thread import Thread
from ui.desk import Desk
from ui.theme import PAGES, page_visitor, prepare


def register(desk: Desk) -> None:
    hub = Hub(desk)

    @ui.page("/")
    def new_conversation() -> None:
        _build(desk, hub, "")

    @ui.page("/c/{conversation_id}")
    def conversation(conversation_id: str) -> None:
        _build(desk, hub, conversation_id)


def _build(desk: Desk, hub: Hub, conversation_id: str) -> None:
    visitor = page_visitor()
    say = prepare(desk, visitor, say_title(conversation_id))
    ...
