"""What all signed-in pages share: the head, the top bar with navigation by role, the language and the theme.

    @ui.page("/admin")
    def admin() -> None:
        visitor = page_visitor()
        with frame(desk, visitor, title=say("Server"), active="/admin"):
            ...

Pages with a layout of their own call `prepare`, and `top_bar` or (chat) `banner`, instead of `frame`.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

from nicegui import Client, background_tasks, ui
from nicegui.element import Element
from starlette.requests import HTTPConnection

from ui.access import Rule, page_right
from ui.auth import Visitor
from ui.base_path import base_of
from ui.components.moment import HERE, Moment
from ui.desk import Desk
from ui.early_script import early_script
from ui.ended import lead_away
from ui.i18n import Language, language, preferred
from ui.nonces import nonce_of
from ui.static_files import stylesheet

for _field in (ui.input, ui.number, ui.select, ui.textarea):
    _field.default_props("outlined dense stack-label")  # one look for every field; the rest is in fields.css
# So high are options in fields.css. A list that is taken for a higher one opens above its field in one place and moves
# to another a moment later, and whoever presses meanwhile chooses another option, or none.
ui.select.default_props("virtual-scroll-item-size=36")

BUILT_WITHIN_S = 30.0  # on a machine that has no time just now; then the visitor gets an error
LEAVES_WITHIN_S = 1.0  # a page that may be used no more; then the server ends it

PAGES = (("/", "Chat"), ("/review", "Review"), ("/admin", "Server"), ("/account", "Account"))  # address, text


def page_visitor() -> Visitor:
    """Who looks at the page that is being built; the guard let nobody else through."""
    visitor = ui.context.client.request.state.visitor
    assert isinstance(visitor, Visitor)
    return visitor


def say_for(visitor: Visitor, request: HTTPConnection) -> Language:
    """The person's language: as chosen on the account page, else the browser's."""
    return language(visitor.user.language or preferred(request.headers.get("accept-language", "")))


def styles(*names: str) -> None:
    """Let the page that is being built use these style sheets of ui/static."""
    base = base_of(ui.context.client.request)
    ui.add_head_html("".join(stylesheet(name, base) for name in names))


def prepare(desk: Desk, visitor: Visitor, title: str) -> Language:
    """Set up the page that is being built: styles, title, language, dark mode.

    When its session ends, or its account loses the right that the page needs, it goes away.
    """
    client = ui.context.client
    rule: Rule = client.request.state.rule
    say = say_for(visitor, client.request)
    styles("tokens.css", "fields.css", "frame.css")
    ui.colors(primary="var(--accent)", positive="var(--good)", negative="var(--bad)", warning="var(--warn)")
    ui.page_title(f"{title} · Qdesk")
    ui.dark_mode({"dark": True, "light": False}.get(visitor.user.theme))
    ui.add_head_html(early_script(say, base_of(client.request), nonce_of(client.request)))

    def over() -> None:
        background_tasks.create(put_out(desk, visitor, client), name="put a page out")

    forget = desk.auth.on_revoked(visitor.session_id, over, rule.right)
    client.on_delete(lambda: forget())
    return say


async def put_out(desk: Desk, visitor: Visitor, client: Client) -> None:
    """Send the browser to another page, then end this one here: its socket shall hear nothing more."""
    if desk.auth.allowed(visitor):
        client.open("/")
    else:
        lead_away(client, await desk.auth.why_ended(visitor), visitor.user.language)
    await asyncio.sleep(LEAVES_WITHIN_S)
    if client.id in Client.instances:
        client.delete()


def top_bar(desk: Desk, visitor: Visitor, say: Language, active: str) -> None:
    """The bar with the pages that this person may open, and Sign out; the banner hangs below it."""
    with ui.element("header").classes("top-bar"):
        ui.link("Qdesk", "/").classes("brand")
        with ui.element("nav").props(f'aria-label="{say("Pages")}"'):
            for address, text in PAGES:
                if desk.auth.allowed(visitor, page_right(address)):
                    link = ui.link(say(text), address)
                    if address == active:
                        link.props("aria-current=page")
        ui.element("span").classes("spring")
        ui.label(visitor.user.name).classes("who")
        with _form(desk, visitor, f"{desk.settings.base_path}/logout"), ui.element("button").props("type=submit"):
            ui.label(say("Sign out"))
    banner(desk, say)


def banner(desk: Desk, say: Language) -> None:
    """The administrators' banner, here where it is called; it comes and goes while the page is open."""
    with ui.element("div").classes("site-banner").props('role="status"') as strip:
        words, until = ui.label().props("dir=auto"), ui.element("span").classes("until")

    def show() -> None:
        now = desk.board.now
        strip.visible = now is not None
        if now:
            words.text = now.text
            strip.classes(remove="info warn bad", add=now.level)
        until.clear()
        if now and now.until:
            with until:
                Moment(now.until, say("until {when}", when=HERE))

    show()
    ui.context.client.on_delete(desk.board.watch(show))


@contextmanager
def frame(desk: Desk, visitor: Visitor, *, title: str, active: str) -> Iterator[Element]:
    """Set the page up and yield the column for its content. `title` is in the reader's language already."""
    say = prepare(desk, visitor, title)
    top_bar(desk, visitor, say, active)
    with ui.element("div").classes("page") as column:  # NiceGUI puts a <main> around it
        yield column


def heading(text: str, level: int) -> ui.html:
    """A heading that screen readers find as one; `text` is plain text."""
    return ui.html(escape(text), tag=f"h{level}", sanitize=False)


@contextmanager
def _form(desk: Desk, visitor: Visitor, action: str) -> Iterator[Element]:
    """A plain form that the browser sends by itself, with the token that makes it the session's own."""
    with ui.element("form").props(f'method=post action="{action}"') as form:
        ui.element("input").props(f"type=hidden name=form_token value={desk.auth.form_token(visitor.session_id)}")
        yield form
