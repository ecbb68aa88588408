"""/account: a person's own language, theme, password, API keys and sessions."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from nicegui import ui
from nicegui.element import Element

from ui.accounts import MAX_NAME, password_trouble
from ui.auth import TooManyTries, Visitor
from ui.desk import Desk
from ui.i18n import LANGUAGES, Language
from ui.theme import frame, heading, page_visitor, say_for

if TYPE_CHECKING:
    from storage.records import ApiKey, Session

MAX_KEYS = 20


def register(desk: Desk) -> None:
    @ui.page("/account")
    async def account() -> None:
        visitor = page_visitor()
        say = say_for(visitor, ui.context.client.request)
        with frame(desk, visitor, title=say("Account"), active="/account"):
            await AccountView(desk, visitor, say).build()


class AccountView:
    """One person's look at their own account; every handler asks first whether the session still lives."""

    def __init__(self, desk: Desk, visitor: Visitor, say: Language) -> None:
        self.desk, self.visitor, self.say = desk, visitor, say
        self.client = ui.context.client

    @property
    def user_id(self) -> str:
        return self.visitor.user.id

    async def build(self) -> None:
        say = self.say
        heading(self.visitor.user.name, 1)
        self._preferences()
        self._password()
        _section(say("API keys"), say("A key lets a program ask in your name. It is shown once, when it is made."))
        self.keys = ui.element("div").classes("list")
        self._new_key()
        _section(say("Where you are signed in"))
        self.sessions = ui.element("div").classes("list")
        _button(say("Sign out everywhere"), self._sign_out_everywhere).classes("danger")
        await self._show_keys()
        await self._show_sessions()

    def _may(self) -> bool:
        if self.desk.auth.allowed(self.visitor):
            return True
        self.client.open("/login")
        return False

    # --- language and theme ---

    def _preferences(self) -> None:
        say, user = self.say, self.visitor.user
        _section(say("Language and theme"))
        with ui.element("div").classes("fields"):
            languages = {"": say("As the browser"), **LANGUAGES}
            ui.select(languages, value=user.language, label=say("Language"), on_change=self._set_language)
            themes = {"": say("As the system"), "light": say("Light"), "dark": say("Dark")}
            ui.select(themes, value=user.theme, label=say("Theme"), on_change=self._set_theme)

    async def _set_language(self, event: object) -> None:
        await self._prefer(language=str(getattr(event, "value", "")))

    async def _set_theme(self, event: object) -> None:
        await self._prefer(theme=str(getattr(event, "value", "")))

    async def _prefer(self, *, language: str | None = None, theme: str | None = None) -> None:
        known = (language is None or language in {"", *LANGUAGES}) and theme in {None, "", "light", "dark"}
        if not self._may() or not known:
            return
        await self.desk.store.users.set_preferences(self.user_id, language=language, theme=theme)
        await self.desk.auth.user_changed(self.user_id)
        self.client.open("/account")

    # --- password ---

    def _password(self) -> None:
        say = self.say
        _section(say("Password"), say("Changing it signs you out everywhere else."))
        with _form(self._change_password):
            self.old = _secret(say("Password now"), "current-password")
            self.new = _secret(say("New password"), "new-password")
            self.again = _secret(say("New password again"), "new-password")
            ui.button(say("Change password")).props("type=submit outline no-caps")

    async def _change_password(self) -> None:
        if not self._may():
            return
        if trouble := await self._password_change():
            ui.notify(trouble, type="negative", position="top")
            return
        for field in (self.old, self.new, self.again):
            field.value = ""
        await self._show_sessions()
        ui.notify(self.say("Your password is changed."), type="positive", position="top")

    async def _password_change(self) -> str:
        """Change the password; what is wrong, in one sentence, where that cannot be."""
        old, new, again = (str(field.value or "") for field in (self.old, self.new, self.again))
        if trouble := password_trouble(self.say, new, again):
            return trouble
        try:
            changed = await self.desk.auth.change_password(self.visitor, old, new)
        except TooManyTries:
            return self.say("Too many tries. Please wait some minutes, then try again.")
        return "" if changed else self.say("That is not your password now.")

    # --- API keys ---

    def _new_key(self) -> None:
        say = self.say
        with _form(self._make_key):
            self.key_name = ui.input(say("What the key is for")).props('maxlength=64 autocomplete="off"')
            ui.button(say("Make a key")).props("type=submit outline no-caps")
        self.fresh = ui.element("div").classes("fresh").props('role="status"')

    async def _make_key(self) -> None:
        if not self._may():
            return
        name = str(self.key_name.value or "").strip()
        if trouble := await self._key_trouble(name):
            ui.notify(trouble, type="negative", position="top")
            return
        key = await self.desk.auth.keys.make(self.user_id, name)
        self.key_name.value = ""
        self.fresh.clear()
        with self.fresh:
            ui.label(self.say("Copy the key now; it is not shown again."))
            ui.label(key).classes("key").props("tabindex=0").mark("fresh-key")
        await self._show_keys()

    async def _key_trouble(self, name: str) -> str:
        if not name or len(name) > MAX_NAME:
            return self.say("Please say what the key is for.")
        if len(await self.desk.store.api_keys.list(self.user_id)) >= MAX_KEYS:
            return self.say("You have {n} keys; delete one first.", n=MAX_KEYS)
        return ""

    async def _show_keys(self) -> None:
        keys = await self.desk.store.api_keys.list(self.user_id)
        self.keys.clear()
        with self.keys:
            if not keys:
                ui.label(self.say("No keys yet.")).classes("soft")
            for key in keys:
                self._key_row(key)

    def _key_row(self, key: "ApiKey") -> None:
        say = self.say
        used = say("used {when}", when=say.time(key.last_used_at)) if key.last_used_at else say("never used")
        with ui.element("div").classes("row"):
            ui.label(key.name).classes("main")
            ui.label(f"{key.prefix}…").classes("mono")
            ui.label(used).classes("soft")
            _button(say("Delete"), lambda: self._revoke_key(key.id), of=key.name)

    async def _revoke_key(self, key_id: str) -> None:
        if self._may():
            await self.desk.auth.keys.revoke(key_id, self.user_id)
            await self._show_keys()

    # --- sessions ---

    async def _show_sessions(self) -> None:
        sessions = await self.desk.store.sessions.list(self.user_id)
        self.sessions.clear()
        with self.sessions:
            for session in sessions:
                self._session_row(session)

    def _session_row(self, session: "Session") -> None:
        say = self.say
        here = session.id == self.visitor.session_id
        with ui.element("div").classes("row"):
            ui.label(session.agent or say("A program")).classes("main")
            ui.label(say("here, now") if here else say("seen {when}", when=say.time(session.last_seen_at))).classes(
                "soft"
            )
            _button(say("Sign out"), lambda: self._end_session(session.id), of=session.agent)

    async def _end_session(self, session_id: str) -> None:
        own = {session.id for session in await self.desk.store.sessions.list(self.user_id)}
        if self._may() and session_id in own:
            await self.desk.auth.sign_out(session_id)
            await self._show_sessions()

    async def _sign_out_everywhere(self) -> None:
        if self._may():
            await self.desk.auth.sign_out_everywhere(self.user_id)


def _section(title: str, about: str = "") -> None:
    heading(title, 2)
    if about:
        ui.label(about).classes("soft")


def _form(action: Callable[[], Awaitable[None]]) -> Element:
    """Fields with a button, where Enter does what the button does."""
    return ui.element("form").classes("fields").on("submit.prevent", action)


def _secret(label: str, complete: str) -> ui.input:
    return ui.input(label, password=True).props(f'autocomplete="{complete}" maxlength=200')


def _button(text: str, action: Callable[[], Awaitable[None]], *, of: str = "") -> ui.button:
    """`of` tells a screen reader which of several it is."""
    button = ui.button(text, on_click=action).props("flat no-caps").classes("plain")
    if of:
        button.props["aria-label"] = f"{text}: {of}"
    return button
