"""From a name and a password to a session. Every way in ends in `admit`, which asks for the second step.

    user = await door.by_password(name, password, address)
    admission = await door.admit(user, agent)           a session, or what is still owed for one
    token = await door.by_code(pending, code, agent, address)

Says the same, and takes the same time, whether there is such an account or not. Knows nothing of HTML and cookies.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loguru import logger

from engine.settings import Settings
from engine.sign_in_settings import role_map
from ui.bus import Bus
from ui.passwords import TooManyHashes
from ui.people import Visitor
from ui.sign_in.failing import SignInFailed as SignInFailed
from ui.sign_in.opening import open_directory, open_provider
from ui.sign_in.outside import LDAP, Outside, group_roles
from ui.sign_in.pending import Pending, PendingSteps
from ui.sign_in.second_step import SecondStep
from ui.tries import TooManyTries, Tries

if TYPE_CHECKING:
    from storage.records import User
    from ui.auth import Auth


@dataclass(frozen=True, slots=True)
class Admission:
    """`token` is a session's where nothing is owed; else it is good for the code, or for setting the second step up."""

    token: str
    owed: Literal["", "code", "set up"] = ""


class Door:
    def __init__(self, auth: "Auth", settings: Settings, bus: Bus) -> None:
        self._auth, self._settings = auth, settings
        self.provider = open_provider(settings)
        self.directory = open_directory(settings)
        self.of_directory = Outside(auth, group_roles(settings.ldap_roles), creates=settings.ldap_create)
        self.of_provider = Outside(auth, role_map(settings.oidc_roles), creates=settings.oidc_create)
        self.tries = Tries(bus)
        self.second_step = SecondStep(auth.store, auth.seal)
        self._pending = PendingSteps()

    async def by_password(self, name: str, password: str, address: str) -> "User":
        """Whose name and password these are. Raises SignInFailed, also as DirectoryAway or NoAccount, or TooManyTries.

        An account with a password of its own is opened by that alone; the directory is never shown that password.
        """
        name = name.strip()
        found = await self._auth.store.users.password_hash(name)
        user, stored = found if found else (None, "")
        account = user.id if user else self._auth.seal("unknown name", name.casefold())  # it may be a password
        self.tries.begin(account, address)
        try:
            signed_in = await self._whose(user, stored, name, password)
        except SignInFailed:
            self.tries.failed(account, address)
            logger.info("sign-in refused for {!r} from {}", user.name if user else "an unknown name", address)
            raise
        if not signed_in.second_step:  # else guessing codes would be free for whoever has the password
            self.tries.succeeded(account, address)
        return signed_in

    async def _whose(self, user: "User | None", stored: str, name: str, password: str) -> "User":
        """Every way to a refusal costs the same: a hash, and the same questions to the directory."""
        own = stored if self._settings.password_sign_in else ""
        fits = await self._verified(own, password)
        if own and user is not None:
            if fits and not user.disabled:
                await self._keep_hash_new(user, own, password)
                return user
            if self.directory:
                await self.directory.pretend()
        elif self.directory and (known := await self.directory.look_up(name, password)):
            return await self.of_directory.account(known)
        raise SignInFailed

    async def _verified(self, stored: str, password: str) -> bool:
        try:
            return await self._auth.passwords.verify(stored or None, password)
        except TooManyHashes:
            raise TooManyTries from None

    async def _keep_hash_new(self, user: "User", stored: str, password: str) -> None:
        if self._auth.passwords.outdated(stored):
            await self._auth.store.users.set_password(user.id, await self._auth.passwords.hash(password))

    async def admit(self, user: "User", agent: str, id_token: str = "") -> Admission:
        """A session for somebody who has shown that they are this person, or what they owe for one."""
        if user.second_step:
            return Admission(self._pending.begin(user.id, "", id_token), "code")
        if self._auth.must_enrol(user):
            return Admission(self._pending.begin(user.id, self.second_step.new_nonce(), id_token), "set up")
        return Admission(await self._auth.start_session(user, agent, id_token))

    def pending(self, token: str) -> Pending | None:
        """What this token is good for; None when it is none, or too old."""
        return self._pending.of(token)

    async def owner(self, pending: Pending) -> "User":
        """Who owes the code, as the account is now. Raises SignInFailed for a disabled one."""
        user = await self._auth.store.users.get(pending.user_id)
        if user is None or user.disabled:
            raise SignInFailed
        return user

    async def by_code(self, token: str, code: str, *, agent: str, address: str) -> str:
        """Take the code that was owed, and return a session's token. Raises SignInFailed or TooManyTries."""
        pending = self._owed(token, to_set_up=False)
        user = await self.owner(pending)
        await self._check_code(user, code, address)
        self._pending.end(token)
        return await self._auth.start_session(user, agent, pending.id_token)

    async def by_setting_up(self, token: str, code: str, agent: str) -> tuple[str, list[str]]:
        """Turn the second step on that was owed: a session's token, and the recovery codes. Raises SignInFailed."""
        pending = self._owed(token, to_set_up=True)
        user = await self.owner(pending)
        codes = await self.second_step.turn_on(user.id, pending.nonce, code)
        if codes is None:
            raise SignInFailed
        self._pending.end(token)
        await self._auth.store.audit.add(user.name, "user.second_step_on", user.name)
        await self._auth.user_changed(user.id)
        return await self._auth.start_session(user, agent, pending.id_token), codes

    def forget(self, user_id: str) -> None:
        """Nobody who is half in as this person gets further."""
        self._pending.forget(user_id)

    # --- whoever is in already ---

    async def has_password(self, visitor: Visitor) -> bool:
        """Whether the account has a password of its own, which can be changed here."""
        return bool(await self._stored(visitor))

    async def asks_password(self, visitor: Visitor) -> bool:
        """Whether the person has a password that can be asked for, here or in the directory."""
        if await self._stored(visitor):
            return True
        return self.directory is not None and LDAP in await self._auth.store.identities.issuers(visitor.user.id)

    async def knows_password(self, visitor: Visitor, password: str) -> bool:
        """Whether this is the visitor's password. Raises TooManyTries or DirectoryAway."""
        account, session, stored = visitor.user.id, visitor.session_id, await self._stored(visitor)
        self.tries.begin(account, session)
        fits = await self._verified(stored, password)
        if not stored and self.directory and (known := await self.directory.look_up(visitor.user.name, password)):
            same = await self._auth.store.identities.find(known.issuer, known.subject)
            fits = same is not None and same.id == account
        if fits:
            self.tries.succeeded(account, session)
        else:
            self.tries.failed(account, session)
        return fits

    async def _stored(self, visitor: Visitor) -> str:
        found = await self._auth.store.users.password_hash(visitor.user.name)
        return found[1] if found else ""

    async def knows_code(self, visitor: Visitor, code: str) -> bool:
        """Whether this is the visitor's code, which is used up by that. Raises TooManyTries."""
        try:
            await self._check_code(visitor.user, code, visitor.session_id)
        except SignInFailed:
            return False
        return True

    async def change_password(self, visitor: Visitor, old: str, new: str) -> bool:
        """Set another password and end the person's other sessions; False when `old` is wrong. Raises TooManyTries."""
        if not await self.knows_password(visitor, old):
            return False
        try:
            hashed = await self._auth.passwords.hash(new)
        except TooManyHashes:
            raise TooManyTries from None
        await self._auth.store.users.set_password(visitor.user.id, hashed)
        await self._auth.sign_out_elsewhere(visitor)
        return True

    def _owed(self, token: str, *, to_set_up: bool) -> Pending:
        pending = self._pending.of(token)
        if pending is None or bool(pending.nonce) != to_set_up:
            raise SignInFailed
        return pending

    async def _check_code(self, user: "User", code: str, address: str) -> None:
        self.tries.begin(user.id, address)
        if not await self.second_step.fits(user.id, code):
            self.tries.failed(user.id, address)
            logger.info("a wrong code for {!r} from {}", user.name, address)
            raise SignInFailed
        self.tries.succeeded(user.id, address)
