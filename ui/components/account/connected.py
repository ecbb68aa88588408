"""Signing in with the OpenID provider: connect one's account with who one is there, or undo that."""

from nicegui import ui

from ui.components.account.parts import Owner, button, section
from ui.pages.sign_on import redirect_uri
from ui.sign_in.trips import ProviderAway, Trip
from ui.tries import TooManyTries


class Connected:
    def __init__(self, owner: Owner) -> None:
        self._owner, self._door = owner, owner.desk.auth.door

    async def build(self) -> None:
        provider, say = self._door.provider, self._owner.say
        if provider is not None:
            about = say("Connect your account to open it with who you are there.")
            section(say("Signing in with {name}", name=provider.label), about)
            self._place = ui.element("div").classes("buttons")
            await self._show(provider.issuer)

    async def _show(self, issuer: str) -> None:
        say = self._owner.say
        connected = issuer in await self._owner.desk.store.identities.issuers(self._owner.id)
        self._place.clear()
        with self._place:
            if not connected:
                button(say("Connect"), self._connect)
                return
            ui.label(say("Your account is connected.")).classes("soft")
            if await self._door.asks_password(self._owner.visitor):  # else nothing would open it any more
                button(say("Disconnect"), self._disconnect)

    async def _connect(self) -> None:
        """Over the page's socket, so that no other site can begin this."""
        owner, provider = self._owner, self._door.provider
        if not owner.may() or provider is None:
            return
        trip = Trip("", "/account", redirect_uri(owner.desk.settings, owner.client.request), owner.visitor.session_id)
        try:
            self._door.tries.leave(owner.visitor.session_id)
            owner.client.open(await provider.begin(trip))
        except ProviderAway:
            owner.warn(owner.say("{name} cannot be reached just now. Please try again later.", name=provider.label))
        except TooManyTries:
            owner.warn(owner.say("Too many tries. Please wait some minutes, then try again."))

    async def _disconnect(self) -> None:
        owner, provider = self._owner, self._door.provider
        if owner.may() and provider is not None and await self._door.asks_password(owner.visitor):
            name = owner.visitor.user.name
            await owner.desk.store.identities.unlink(owner.id, provider.issuer)
            await owner.desk.store.audit.add(name, "user.disconnect", name, provider.issuer)
            await self._show(provider.issuer)
