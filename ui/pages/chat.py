"""The chat page: `/` for a new conversation, `/c/{id}` for one of one's own.

Builds the components and hands them to a ChatView, which is made anew for every page load. The page is there at
once; what it shows comes as soon as the store has answered.
"""

from nicegui import background_tasks, ui

from ui.access import page_right
from ui.components.chat_view import ChatView
from ui.components.composer import Composer
from ui.components.feedback import FeedbackDialog, Ratings
from ui.components.hub import Hub
from ui.components.notices import Notices
from ui.components.preferences import Preferences
from ui.components.shortcuts import Shortcuts
from ui.components.sidebar import Sidebar
from ui.components.templates import Templates
from ui.components.thread import Thread
from ui.components.waiting import Waiting, WhenFree
from ui.desk import Desk
from ui.pages import transfer
from ui.theme import PAGES, banner, page_visitor, prepare, say_for, styles


def register(desk: Desk) -> None:
    hub, when_free = Hub(desk), WhenFree(desk.service)
    transfer.register(desk, hub.list_changed)

    @ui.page("/")
    def new_conversation() -> None:
        _build(desk, hub, when_free, "")

    @ui.page("/c/{conversation_id}")
    def conversation(conversation_id: str) -> None:
        _build(desk, hub, when_free, conversation_id)


def _build(desk: Desk, hub: Hub, when_free: WhenFree, conversation_id: str) -> None:
    visitor, client = page_visitor(), ui.context.client
    say = prepare(desk, visitor, say_for(visitor, client.request)("Chat"))
    styles("chat.css", "turns.css", "list.css", "answer.css", "popovers.css")
    links = [
        (desk.settings.base_path + path, say(text))
        for path, text in PAGES
        if path != "/" and desk.auth.allowed(visitor, page_right(path))
    ]
    with ui.element("div").classes("chat"):
        sidebar = Sidebar(say, visitor.user.name, links, desk.auth.form_token(visitor.session_id))
        with ui.element("div").classes("chat-main"):  # NiceGUI puts a <main> around it
            banner(desk, say)
            thread = Thread(say)
            with ui.element("div").classes("above-composer"):
                waiting = Waiting(say, visitor.user.id)
                Templates(desk, visitor, say)
            composer = Composer(say, visitor.user.id, conversation_id)
    Shortcuts(say)
    dialog, notices = FeedbackDialog(say), Notices(say, visitor.user.id)
    view = ChatView(
        desk, hub, visitor, say, sidebar=sidebar, thread=thread, composer=composer, preferences=Preferences(say)
    )
    Ratings(desk, hub, view, thread, dialog)
    view.on_ended = notices.ended
    when_free.join(desk, visitor, waiting, lambda: view.shown.busy or view.shown.answering)
    client.on_connect(view.connected)
    client.on_delete(view.close)
    client.on_delete(lambda: when_free.leave(waiting))
    background_tasks.create(view.start(conversation_id), name="chat page")
