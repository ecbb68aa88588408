"""/account: a person's own language, theme, defaults, templates, password, API keys, sessions and data."""

from typing import TYPE_CHECKING

from nicegui import ui

from ui.access import ACTIONS
from ui.accounts import MAX_NAME, password_trouble
from ui.components.account.connected import Connected
from ui.components.account.defaults import Defaults
from ui.components.account.own_data import Erasing, Readings
from ui.components.account.parts import Owner, button, form, secret, section, submit, whose
from ui.components.account.second_step import SecondStepSection
from ui.components.account.sessions import Sessions
from ui.components.account.templates import OwnTemplates
from ui.components.moment import HERE, Moment
from ui.components.notices import NotificationSwitch
from ui.desk import Desk
from ui.i18n import LANGUAGES
from ui.pages import account_export
from ui.theme import BUILT_WITHIN_S, frame, heading, page_visitor, say_for, styles
from ui.tries import TooManyTries

if TYPE_CHECKING:
    from storage.records import ApiKey

MAX_KEYS = 20


def register(desk: Desk) -> None:
    account_export.register(desk)

    @ui.page("/account", response_timeout=BUILT_WITHIN_S)
    async def account() -> None:
        visitor, client = page_visitor(), ui.context.client
        say = say_for(visitor, client.request)
        styles("account.css")
        with frame(desk, visitor, title=say("Account"), active="/account"):
            await AccountView(Owner(desk, visitor, say, client)).build()


class AccountView:
    """One person's look at their own account; every handler asks first whether the session still lives."""

    def __init__(self, owner: Owner) -> None:
        self.owner, self.desk, self.say = owner, owner.desk, owner.say
        self.visitor, self.user_id = owner.visitor, owner.id
        self.sessions = Sessions(owner)

    async def build(self) -> None:
        say = self.say
        heading(say("Account"), 1)
        ui.label(self.visitor.user.name).classes("name").props("dir=auto")
        self._preferences()
        await Defaults(self.owner).build()
        await OwnTemplates(self.owner, shared=False).build()
        if self.desk.auth.allowed(self.visitor, ACTIONS["template.share"]):
            await OwnTemplates(self.owner, shared=True).build()
        if await self.desk.auth.door.has_password(self.visitor):
            self._password()
        await SecondStepSection(self.owner).build()
        await Connected(self.owner).build()
        section(say("API keys"), say("A key lets a program ask in your name. It is shown once, when it is made."))
        ui.link(say("The API, to read and to try"), "/docs").classes("plain-link")
        self.keys = ui.element("div").classes("list")
        self._new_key()
        await self._show_keys()
        await self.sessions.build()
        if self.desk.settings.show_reviews:
            await Readings(self.owner).build()
        await Erasing(self.owner).build()

    # --- language and theme ---

    def _preferences(self) -> None:
        say, user = self.say, self.visitor.user
        section(say("Language and theme"))
        with ui.element("div").classes("fields"):
            languages = {"": say("As the browser"), **LANGUAGES}
            ui.select(languages, value=user.language, label=say("Language"), on_change=self._set_language)
            themes = {"": say("As the system"), "light": say("Light"), "dark": say("Dark")}
            ui.select(themes, value=user.theme, label=say("Theme"), on_change=self._set_theme)
        NotificationSwitch(say, self.user_id)

    async def _set_language(self, event: object) -> None:
        await self._prefer(language=str(getattr(event, "value", "")))

    async def _set_theme(self, event: object) -> None:
        await self._prefer(theme=str(getattr(event, "value", "")))

    async def _prefer(self, *, language: str | None = None, theme: str | None = None) -> None:
        known = (language is None or language in {"", *LANGUAGES}) and theme in {None, "", "light", "dark"}
        if not self.owner.may() or not known:
            return
        await self.desk.store.users.set_preferences(self.user_id, language=language, theme=theme)
        await self.desk.auth.user_changed(self.user_id)
        self.owner.client.open("/account")

    # --- password ---

    def _password(self) -> None:
        say = self.say
        section(say("Password"), say("Changing it signs you out everywhere else."))
        with form(self._change_password):
            whose(self.visitor.user.name)
            self.old = secret(say("Password now"), "current-password")
            self.new = secret(say("New password"), "new-password")
            self.again = secret(say("New password again"), "new-password")
            submit(say("Change password"))

    async def _change_password(self) -> None:
        if not self.owner.may():
            return
        if trouble := await self._password_change():
            self.owner.warn(trouble)
            return
        for field in (self.old, self.new, self.again):
            field.value = ""
        await self.sessions.show()
        self.owner.tell(self.say("Your password is changed."))

    async def _password_change(self) -> str:
        """Change the password; what is wrong, in one sentence, where that cannot be."""
        old, new, again = (str(field.value or "") for field in (self.old, self.new, self.again))
        if trouble := password_trouble(self.say, new, again):
            return trouble
        try:
            changed = await self.desk.auth.door.change_password(self.visitor, old, new)
        except TooManyTries:
            return self.say("Too many tries. Please wait some minutes, then try again.")
        return "" if changed else self.say("That is not your password now.")

    # --- API keys ---

    def _new_key(self) -> None:
        say = self.say
        with form(self._make_key):
            self.key_name = ui.input(say("What the key is for")).props('maxlength=64 autocomplete="off"')
            submit(say("Make a key"))
        self.fresh = ui.element("div").classes("fresh").props('role="status"')

    async def _make_key(self) -> None:
        if not self.owner.may():
            return
        name = str(self.key_name.value or "").strip()
        if trouble := await self._key_trouble(name):
            self.owner.warn(trouble)
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
        with ui.element("div").classes("row"):
            ui.label(key.name).classes("main")
            ui.label(f"{key.prefix}…").classes("mono")
            used = (
                Moment(key.last_used_at, say("used {when}", when=HERE))
                if key.last_used_at
                else ui.label(say("never used"))
            )
            used.classes("soft")
            button(say("Delete"), lambda: self._revoke_key(key.id), of=key.name)

    async def _revoke_key(self, key_id: str) -> None:
        if self.owner.may():
            await self.desk.auth.keys.revoke(key_id, self.user_id)
            await self._show_keys()
