"""What the sections of the account page are made of: headings, forms where Enter does what the button does, buttons."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from nicegui import Client, background_tasks, ui
from nicegui.element import Element

from ui.auth import Visitor
from ui.desk import Desk
from ui.i18n import Language
from ui.theme import heading, put_out


@dataclass(frozen=True, slots=True)
class Owner:
    """The person whose account page this is; every handler asks `may` before it acts."""

    desk: Desk
    visitor: Visitor
    say: Language
    client: Client

    @property
    def id(self) -> str:
        return self.visitor.user.id

    def may(self) -> bool:
        """Whether the session still lives; whoever's does not is led away."""
        if self.desk.auth.allowed(self.visitor):
            return True
        background_tasks.create(put_out(self.desk, self.visitor, self.client), name="put a page out")
        return False

    def tell(self, text: str) -> None:
        with self.client:
            ui.notify(text, type="positive", position="top")

    def warn(self, text: str) -> None:
        with self.client:
            ui.notify(text, type="negative", position="top")


def section(title: str, about: str = "") -> None:
    heading(title, 2)
    if about:
        ui.label(about).classes("soft")


def form(action: Callable[[], Awaitable[None]]) -> Element:
    """Fields with a button, where Enter does what the button does."""
    return ui.element("form").classes("fields").on("submit.prevent", action)


def submit(text: str) -> ui.button:
    return ui.button(text).props("type=submit unelevated no-caps")


def whose(name: str) -> None:
    """In a form of passwords: for whom they are, so that the browser keeps them under that name."""
    field = ui.element("input").classes("visually-hidden")
    field.props("type=text name=username autocomplete=username readonly tabindex=-1 aria-hidden=true")
    field.props["value"] = name


def secret(label: str, complete: str) -> ui.input:
    return ui.input(label, password=True).props(f'autocomplete="{complete}" maxlength=200')


def button(text: str, action: Callable[[], Awaitable[None]], *, of: str = "") -> ui.button:
    """`of` tells a screen reader which of several it is."""
    made = ui.button(text, on_click=action).props("outline no-caps").classes("plain")
    if of:
        made.props["aria-label"] = f"{text}: {of}"
    return made
