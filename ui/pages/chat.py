"""The chat page: `/` for a new conversation, `/c/{id}` for one of one's own.

Builds the four components and hands them to a ChatView, which is made anew for every page load. The page is there at
once; what it shows comes as soon as the store has answered.
"""

from nicegui import background_tasks, ui

from ui.components.chat_view import ChatView
from ui.components.composer import Composer
from ui.components.hub import Hub
from ui.components.preferences import Preferences
from ui.components.sidebar import Sidebar
from ui.components.thread import Thread
from ui.desk import Desk
from ui.static_files import stylesheet
from ui.theme import PAGES, banner, page_visitor, prepare, say_for


def register(desk: Desk) -> None:
    hub = Hub(desk.service)

    @ui.page("/")
    def new_conversation() -> None:
        _build(desk, hub, "")

    @ui.page("/c/{conversation_id}")
    def conversation(conversation_id: str) -> None:
        _build(desk, hub, conversation_id)


def _build(desk: Desk, hub: Hub, conversation_id: str) -> None:
    visitor, client = page_visitor(), ui.context.client
    say = prepare(desk, visitor, say_for(visitor, client.request)("Chat"))
    ui.add_head_html(stylesheet("chat.css") + stylesheet("answer.css"))
    links = [(path, say(text)) for path, text, roles in PAGES if path != "/" and desk.auth.allowed(visitor, *roles)]
    with ui.element("div").classes("chat"):
        sidebar = Sidebar(say, visitor.user.name, links, desk.auth.form_token(visitor.session_id))
        with ui.element("main").classes("chat-main"):
            banner(desk, say)
            thread = Thread(say)
            composer = Composer(say, visitor.user.id)
    view = ChatView(
        desk, hub, visitor, say, sidebar=sidebar, thread=thread, composer=composer, preferences=Preferences(say)
    )
    client.on_connect(view.connected)
    client.on_delete(view.close)
    background_tasks.create(view.start(conversation_id), name="chat page")
