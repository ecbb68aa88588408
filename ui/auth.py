"""Who is signed in, and who may do what. The one place that sessions are checked.

    visitor = auth.visitor_of(request)              who looks at a page, or None
    auth.allowed(visitor, Right.REVIEW)             from memory: every handler of every page asks this before it acts
    auth.on_revoked(visitor.session_id, callback)   the session ended, or the account lost the right that it is for
    auth.keys                                       the same for programs: ui/keys.py
    auth.door                                       how somebody signs in: ui/sign_in/door.py

Which right is needed for what: ui/access.py.

Live sessions are kept in memory, so that asking costs nothing and ending one is felt at once. Whoever changes an
account in the store (role, disabled) calls `await auth.user_changed(id)` afterwards. Changes made past this process
are noticed within RECHECK_S. Knows nothing of HTML; lives on the event loop.
"""

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from loguru import logger
from starlette.requests import HTTPConnection
from starlette.types import Scope

from engine.settings import Settings
from ui.access import HOLDERS, Right
from ui.bus import Bus
from ui.ended import Ended
from ui.keys import Keys
from ui.passwords import Passwords
from ui.people import Caller as Caller
from ui.people import Visitor as Visitor
from ui.seal import Seal, open_seal
from ui.setup import Setup
from ui.sign_in.door import Door

if TYPE_CHECKING:
    from storage import Store
    from storage.records import Session, User

IDLE = timedelta(days=7)  # a session that nobody used for so long ends
LIFETIME = timedelta(days=30)  # and every session ends then
SEEN_EVERY = timedelta(minutes=1)  # how exact "last seen" is
RECHECK_S = 10.0  # how often the store is asked whether sessions and accounts are still what memory says
TELLS_WITHIN_S = 1.0  # why a session has ended; else only that it has


@dataclass(slots=True)
class _Live:
    user: "User"
    token_hash: str
    expires_at: datetime
    seen_at: datetime

    def expired(self, now: datetime) -> bool:
        return now >= self.expires_at or now - self.seen_at >= IDLE


class Auth:
    lifetime = LIFETIME

    def __init__(self, store: "Store", settings: Settings, seal: Seal | None = None, bus: Bus | None = None) -> None:
        self.store = store
        self.seal = seal or open_seal(settings)
        self.passwords = Passwords()
        self.keys = Keys(store, self.seal, settings.api_key.get_secret_value())
        self.on_disabled: Callable[[str], None] = lambda user_id: None  # told of every account that is found disabled
        self.setup = Setup(store, self.passwords, self.seal)
        self._careful = frozenset(settings.roles_with_second_step)
        self._live: dict[str, _Live] = {}  # by session id
        self._ids: dict[str, str] = {}  # token hash -> session id
        self._watchers: dict[str, set[tuple[Right, Callable[[], None]]]] = {}  # by session id
        self._revocations = 0  # counts them, so that a look-up that was under way meanwhile is made again
        self.door = Door(self, settings, bus or Bus())
        self._tasks: set[asyncio.Task[None]] = set()

    # --- sessions ---

    async def start_session(self, user: "User", agent: str, id_token: str = "") -> str:
        """Return the token of a new session: 32 random bytes, of which only the seal is stored.

        `id_token` is the OpenID provider's, where its own session is to end with this one.
        """
        token = secrets.token_urlsafe(32)
        await self.store.sessions.create(
            user.id, self.seal("session", token), agent[:300], datetime.now(UTC) + LIFETIME, id_token
        )
        return token

    async def sign_out(self, session_id: str) -> None:
        await self.store.sessions.end(session_id)
        self._revoke([session_id])

    async def sign_out_elsewhere(self, visitor: Visitor) -> None:
        """End all of the person's sessions but this one."""
        for session in await self.store.sessions.list(visitor.user.id):
            if session.id != visitor.session_id:
                await self.sign_out(session.id)

    async def sign_out_everywhere(self, user_id: str) -> None:
        self.door.forget(user_id)
        await self.store.sessions.end_all(user_id)
        self._revoke([id for id, live in self._live.items() if live.user.id == user_id])

    # --- who asks ---

    async def visitor(self, token: str) -> Visitor | None:
        """Whose session this token opens; counts as having been seen."""
        token_hash = self.seal("session", token)
        session_id = self._ids.get(token_hash) or await self._fetch(token_hash)
        live = self._live.get(session_id) if session_id else None
        if session_id is None or live is None:
            return None
        now = datetime.now(UTC)
        if live.expired(now) or self.must_enrol(live.user):
            await self.sign_out(session_id)
            return None
        if now - live.seen_at >= SEEN_EVERY:
            live.seen_at = now
            self._background(self._seen(session_id, live.user.id))
        return Visitor(live.user, session_id)

    def visitor_of(self, asked: Scope | HTTPConnection) -> Visitor | None:
        """The visitor that the guard found, as the account stands now; None when the session is over."""
        scope = asked.scope if isinstance(asked, HTTPConnection) else asked
        visitor = scope.get("state", {}).get("visitor")
        live = self._live.get(visitor.session_id) if isinstance(visitor, Visitor) else None
        return Visitor(live.user, visitor.session_id) if live and not live.expired(datetime.now(UTC)) else None

    def allowed(self, visitor: Visitor, right: Right = Right.USE) -> bool:
        """Whether the session still lives, the account is enabled, and its role has this right."""
        live = self._live.get(visitor.session_id)
        if live is None or live.expired(datetime.now(UTC)):
            return False
        return not live.user.disabled and not self.must_enrol(live.user) and live.user.role in HOLDERS[right]

    async def why_ended(self, visitor: Visitor) -> Ended:
        """What somebody is told whose session is over; soon, for what is on their screen is there until then."""
        try:
            async with asyncio.timeout(TELLS_WITHIN_S):
                user = await self.store.users.get(visitor.user.id)
        except Exception as error:  # they are out all the same
            logger.warning("why a session has ended could not be looked up: {!r}", error)
            return "signed-out"
        return "disabled" if user is None or user.disabled else "signed-out"

    def must_enrol(self, user: "User") -> bool:
        """Whether this role needs a second step and the person has none: it is set up at the next sign-in."""
        return user.role in self._careful and not user.second_step

    def on_revoked(self, session_id: str, callback: Callable[[], None], right: Right = Right.USE) -> Callable[[], None]:
        """Call back once the session has ended or its account has lost this right; the returned function forgets it."""
        watcher = right, callback
        self._watchers.setdefault(session_id, set()).add(watcher)

        def forget() -> None:
            watchers = self._watchers.get(session_id, set())
            watchers.discard(watcher)
            if not watchers:
                self._watchers.pop(session_id, None)

        return forget

    async def user_changed(self, user_id: str) -> None:
        """Take over what the store now says of this account; a disabled one loses its sessions at once."""
        self._revocations += 1
        user = await self.store.users.get(user_id)
        if user is None or user.disabled or self.must_enrol(user):
            await self.sign_out_everywhere(user_id)
            if user is None or user.disabled:
                self.on_disabled(user_id)
            return
        for session_id, live in list(self._live.items()):
            if live.user.id == user_id:
                self._take_over(session_id, live, user)

    # --- forms ---

    def form_token(self, session_id: str) -> str:
        """What a form must carry to be taken as this session's own."""
        return self.seal("form", session_id)

    def form_fits(self, session_id: str, token: str) -> bool:
        return self.seal.fits("form", session_id, token)

    def close(self) -> None:
        """End the threads that look at passwords."""
        self.passwords.close()
        if self.door.directory:
            self.door.directory.close()

    # --- keeping memory true ---

    async def keep_true(self) -> None:
        """Compare memory with the store now and then, for ever."""
        while True:
            await asyncio.sleep(RECHECK_S)
            try:
                await self.recheck()
            except Exception as error:
                logger.warning("sessions could not be checked: {!r}", error)

    async def recheck(self) -> None:
        """Take over roles, and end what has expired, or was disabled or ended past this process."""
        users = {user.id: user for user in await self.store.users.list()}
        known = dict(self._live)
        kept: set[str] = set()
        for user_id in {live.user.id for live in known.values()} & users.keys():
            kept |= {session.id for session in await self.store.sessions.list(user_id)}
        now = datetime.now(UTC)
        over = []
        for session_id, live in known.items():
            user = users.get(live.user.id)
            out = user is None or user.disabled or self.must_enrol(user)
            if out or user is None or session_id not in kept or live.expired(now):
                over.append(session_id)
            else:
                self._take_over(session_id, live, user)
        self._revoke(over)
        for user in users.values():
            if user.disabled:
                self.on_disabled(user.id)
        await self.keys.recheck()

    async def _fetch(self, token_hash: str) -> str | None:
        while True:
            before = self._revocations
            session = await self.store.sessions.find(token_hash)
            if before == self._revocations:
                break
        if session is None:
            return None
        self._remember(session, token_hash)
        return session.id

    def _remember(self, session: "Session", token_hash: str) -> None:
        self._live[session.id] = _Live(session.user, token_hash, session.expires_at, session.last_seen_at)
        self._ids[token_hash] = session.id

    def _revoke(self, session_ids: list[str]) -> None:
        self._revocations += 1
        for session_id in session_ids:
            if live := self._live.pop(session_id, None):
                self._ids.pop(live.token_hash, None)
            _tell(self._watchers.pop(session_id, set()))

    def _take_over(self, session_id: str, live: _Live, user: "User") -> None:
        """The account as it stands now; who watches a right that it has no more is told."""
        live.user = user
        watchers = self._watchers.get(session_id, set())
        lost = {watcher for watcher in watchers if user.role not in HOLDERS[watcher[0]]}
        watchers -= lost
        _tell(lost)

    async def _seen(self, session_id: str, user_id: str) -> None:
        await self.store.sessions.seen(session_id)
        await self.store.users.seen(user_id)

    def _background(self, work: "Coroutine[object, object, None]") -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _tell(watchers: set[tuple[Right, Callable[[], None]]]) -> None:
    for _, callback in watchers:
        try:
            callback()
        except Exception as error:  # the other pages and sessions must hear of it all the same
            logger.opt(exception=error).error("a page was not told that its session has ended")
