"""A person's second step at sign-in: set it up with an authenticator app, new recovery codes, turn it off."""

from nicegui import ui

from ui.components.account.parts import Owner, button, form, secret, section, submit, whose
from ui.pages.second_step import grouped
from ui.sign_in.failing import DirectoryAway
from ui.sign_in.second_step import picture_address
from ui.tries import TooManyTries


class SecondStepSection:
    def __init__(self, owner: Owner) -> None:
        self._owner, self._door = owner, owner.desk.auth.door
        self._nonce = ""  # of what is being set up

    async def build(self) -> None:
        say = self._owner.say
        about = say("After your password a code is asked for, which an app on your phone shows.")
        section(say("Second step at sign-in"), about)
        self._place = ui.element("div").classes("second-step")
        self._asks_password = await self._door.asks_password(self._owner.visitor)
        await self._show()

    async def _show(self) -> None:
        user = await self._owner.desk.store.users.get(self._owner.id)
        self._place.clear()
        with self._place:
            if user is not None and user.second_step:
                await self._show_on()
            else:
                self._show_off()

    # --- off ---

    def _show_off(self) -> None:
        with form(self._begin):
            self._password_field()
            submit(self._owner.say("Set up the second step"))

    async def _begin(self) -> None:
        if not self._owner.may() or not await self._password_fits():
            return
        self._nonce = self._door.second_step.new_nonce()
        self._show_setting_up()

    def _show_setting_up(self) -> None:
        say, step = self._owner.say, self._door.second_step
        key = step.secret(self._owner.id, self._nonce)
        self._place.clear()
        with self._place:
            how = say("Scan this picture with the app, or type the key into it. Then enter the code that it shows.")
            ui.label(how)
            code = ui.element("img").classes("qr")
            code.props["src"] = picture_address(step.address(self._owner.visitor.user.name, key))
            code.props["alt"] = say("QR code")
            ui.label(grouped(key)).classes("key").props("tabindex=0")
            with form(self._turn_on):
                self._code_field()
                submit(say("Turn it on"))
        self._code.run_method("focus")

    async def _turn_on(self) -> None:
        owner, say = self._owner, self._owner.say
        if not owner.may() or not self._nonce:
            return
        codes = await self._door.second_step.turn_on(owner.id, self._nonce, str(self._code.value or ""))
        if codes is None:
            owner.warn(say("That code does not fit. Is the clock of your phone right?"))
            return
        self._nonce = ""
        await self._changed("user.second_step_on")
        await owner.desk.auth.sign_out_elsewhere(owner.visitor)
        await self._show()
        self._show_codes(codes)
        owner.tell(say("The second step is on. You are signed out everywhere else."))

    # --- on ---

    async def _show_on(self) -> None:
        say, left = self._owner.say, await self._door.second_step.recovery_codes_left(self._owner.id)
        ui.label(say("It is on. Recovery codes that are left: {n}.", n=left)).classes("soft")
        self._codes = ui.element("div").classes("fresh").props('role="status"')
        with form(self._turn_off):
            self._password_field()
            self._code_field()
            with ui.element("div").classes("buttons"):
                submit(say("Turn it off"))
                button(say("New recovery codes"), self._renew)

    async def _turn_off(self) -> None:
        owner, say = self._owner, self._owner.say
        if not owner.may():
            return
        if owner.visitor.user.role in owner.desk.settings.roles_with_second_step:
            owner.warn(say("Your role needs the second step."))
        elif await self._both_fit():
            await owner.desk.store.second_factors.turn_off(owner.id)
            await self._changed("user.second_step_off")
            await self._show()
            owner.tell(say("The second step is off."))

    async def _renew(self) -> None:
        if self._owner.may() and await self._both_fit():
            codes = await self._door.second_step.new_recovery_codes(self._owner.id)
            await self._changed("user.recovery_codes")
            await self._show()
            self._show_codes(codes)

    def _show_codes(self, codes: list[str]) -> None:
        say = self._owner.say
        about = say(
            "Keep these recovery codes where only you can read them; they are not shown again. "
            "Without your phone, each of them signs you in once."
        )
        with self._codes:
            ui.label(about)
            with ui.element("ul").classes("codes"):
                for code in codes:
                    with ui.element("li"):
                        ui.label(code)

    async def _changed(self, action: str) -> None:
        name = self._owner.visitor.user.name
        await self._owner.desk.store.audit.add(name, action, name)
        await self._owner.desk.auth.user_changed(self._owner.id)

    # --- what is asked ---

    def _password_field(self) -> None:
        if self._asks_password:
            whose(self._owner.visitor.user.name)
            self._password = secret(self._owner.say("Your password"), "current-password")

    def _code_field(self) -> None:
        more = 'autocomplete="one-time-code" maxlength=40 autocapitalize="none" spellcheck="false"'
        self._code = ui.input(self._owner.say("Code")).props(more)

    async def _both_fit(self) -> bool:
        """The code first: a password that fits must not make guessing codes free."""
        return await self._code_fits() and await self._password_fits()

    async def _code_fits(self) -> bool:
        owner, say = self._owner, self._owner.say
        try:
            if await self._door.knows_code(owner.visitor, str(self._code.value or "")):
                return True
            owner.warn(say("That code does not fit. Each works once."))
        except TooManyTries:
            owner.warn(say("Too many tries. Please wait some minutes, then try again."))
        return False

    async def _password_fits(self) -> bool:
        owner, say = self._owner, self._owner.say
        if not self._asks_password:
            return True
        try:
            if await self._door.knows_password(owner.visitor, str(self._password.value or "")):
                return True
            owner.warn(say("That is not your password now."))
        except DirectoryAway:
            owner.warn(say("The directory of accounts cannot be reached just now. Please try again later."))
        except TooManyTries:
            owner.warn(say("Too many tries. Please wait some minutes, then try again."))
        return False
