"""The store: one object that is passed to the faces, with one attribute a subject.

    store = Store("sqlite:///data/qdesk.db"); store.open()     # migrates, marks unfinished exchanges `interrupted`
    user = await store.users.create("ada", password_hash, "staff")
    ...
    store.close()                                  # writes what is queued, then closes
    store.open(joining=Joining(...))               # several processes on one PostgreSQL: storage/cluster.py

Every method that touches the database is async and runs on the writer thread (writes) or a reader thread (reads);
`exchanges.record` alone is a plain call that queues and returns a future, and `exchanges.health` one that looks.

What they raise: StorageUnavailable when the database is in trouble (a change waits ten seconds for the trouble to end
and is then withdrawn for good; recorded exchanges wait as long as it takes, and so do, in a store that `goes_on`,
`conversations.create` and `set_head`), SearchTooSlow from searches, ValueError for a cursor that is not one of that
list. Each carries a sentence that may be shown to people.

    users     create(name, password_hash, role) -> User | None           None: the name is taken
              create_first(name, password_hash) -> User | None          the first admin; None: there is one already
              get(id) / by_name(name) -> User | None
              password_hash(name) -> tuple[User, str] | None
              list() -> list[User] · count() -> int
              set_role(id, role) / set_disabled(id, flag) -> bool         False: the last administrator, or nobody
              set_password(id, password_hash) · set_max_requests(id, most | None)
              set_preferences(id, *, language=None, theme=None)           None = leave as it is
              defaults(id) -> tuple[str | None, Sampling | None]          for new conversations; None = the server's
              set_defaults(id, *, system_prompt, sampling)
              seen(id)
    sessions  create(user_id, token_hash, agent, expires_at, id_token="") -> Session
              find(token_hash) -> Session | None                    None too when expired or the account is disabled
              seen(id) · list(user_id) -> list[Session] · end(id) · end_all(user_id)
              counts() -> dict[str, int]                                  running ones by user id
              id_token(id) -> str                                   of the OpenID provider; "": none is kept
    api_keys  create(user_id, name, key_hash, prefix) -> ApiKey
              find(key_hash) -> tuple[ApiKey, User] | None                None too when the account is disabled
              list(user_id) -> list[ApiKey] · revoke(id, user_id) -> bool · seen(id)
              everybodys() -> list[tuple[ApiKey, User]]
    second_factors
              of(user_id) -> SecondFactor | None
              turn_on(user_id, nonce, step, code_hashes) / turn_off(user_id) -> bool
              use_step(user_id, step) / use_recovery_code(user_id, code_hash) -> bool     False: not, or not again
              renew_recovery_codes(user_id, code_hashes)
    identities
              find(issuer, subject) -> User | None                  disabled or not
              create_user(name, role, issuer, subject) -> User | None     None: the name or the subject is taken
              link(user_id, issuer, subject) / unlink(user_id, issuer) -> bool · issuers(user_id) -> set[str]
              of(user_id) -> list[tuple[str, str]]                  issuer and subject
    sign_in_links
              create(token_hash, user_id, expires_at) · find(token_hash) / use(token_hash) -> User | None
    invites   create(token_hash, *, name, role, invited_by, expires_at) -> Invite
              find(token_hash) -> Invite | None                           None too when used or over
              accept(token_hash, name, password_hash) -> User | "taken" | "over"
              list() -> list[Invite] · take_back(id) -> bool
    conversations
              create(user_id, *, title="", system_prompt=None, sampling=None) -> Conversation
              get(id, user_id) -> Conversation | None               None too when it is somebody else's or deleted
              list(user_id, *, limit=100, cursor=None, shelf=None, deleted=False) -> Page[Conversation]
                                                                    by updated_at; `deleted`: those too
              rename(id, user_id, title) / delete(id, user_id) / restore(id, user_id) -> bool
              entitle(id, user_id, title) -> bool                   the model's title; False: a person gave one
              pin(id, user_id, flag) / archive(id, user_id, flag) / move(id, user_id, folder) -> bool
              rename_folder(user_id, name, new_name) -> int
              configure(id, user_id, *, system_prompt, sampling) -> bool
              set_head(id, user_id, exchange_id, *, used=True) -> bool    used: also moves updated_at
              exchanges(id, user_id) -> list[Exchange]              the whole tree, oldest first
              take_in(user_id, exchanges, *, title, updated_at, ...) -> str      import: the new conversation's id
              search(user_id, text, *, limit=30) -> list[Hit]
    turns     remove(id, user_id, exchange_id, head_id) -> bool     hide it and what follows; the log keeps it
              restore(id, user_id, exchange_id, head_id) -> bool    undo that
              fork(id, user_id, exchange_id, title) -> str | None         the new conversation's id
    exchanges record(exchange) -> asyncio.Future[None]              insert or update; done when committed
              health() -> str | None
              get(id) -> Exchange | None
              conversation(conversation_id) -> list[Exchange]             for reviewers: anybody's, deleted or not
              search(filter, *, limit=50, cursor=None) -> Page[ExchangeRow]      newest first
              read(filter, *, limit=200, cursor=None) -> Page[Exchange]   the same list, whole exchanges
              count() -> int
              like(id, *, limit=50) -> list[ExchangeRow]            the most alike first
              read_like(id, *, limit=50) -> list[Exchange]                the same list, whole exchanges
              beside(exchange, *, limit=50) -> tuple[int, list[ExchangeRow]]     at the same time: how many, the first
              reruns(id) -> list[Exchange] · models() -> list[str]
              unfinished(person=None) -> list[ExchangeRow]          what runs or waits, in whichever process
              usage(since) -> dict[str, tuple[int, int]]                  by user id: requests, completion tokens
    idempotency
              find(caller, key) -> Asked | None                     what was asked under this key within a day
              claim(caller, key, body_hash, exchange_ids) -> Asked | None       None: it is new, and now this caller's
              release(caller, key)
    feedback  set(exchange_id, user_id, rating, *, reason="", comment="") -> bool     False: not a question of theirs
              remove(exchange_id, user_id) -> bool
              of(exchange_ids) -> dict[str, Feedback]               by exchange id; who has asked rates, nobody else
              list(user_id) -> list[Feedback]                       newest first
    templates create(user_id, name, text, *, shared=False) -> Template
              list(user_id) -> list[Template]                       one's own and the shared ones, by name
              change(id, user_id, name, text) / remove(id, user_id) -> bool       user_id None: a shared one
    erasures  request(user_id)                                      also hides their conversations from them
              withdraw(user_id) · waiting() -> list[Erasure]              oldest first
              plan(user_id) -> Due · erase(user_id) -> int          exchanges that go for good
    reviews   of(exchange_id) -> Review · marks(exchange_ids) -> dict[str, Mark]
              label(exchange_id, label, by) / unlabel(exchange_id, label) -> bool · labels() -> list[str]
              add_note(exchange_id, text, by) / remove_note(id, by) -> bool
              correct(exchange_id, answer) / assign(exchange_id, reviewer) / set_done(exchange_id, by) -> bool
              counts() -> ReviewCounts
    retention plan(days) -> dict[Kind, Due] · enforce(days) -> dict[Kind, int]
              hold(kind, target, *, reason, by) · release(kind, target) -> bool · holds() -> list[Hold]
    audit     add(actor, action, target="", detail="")
              list(*, action="", actor=None, since=None, until=None, limit=100, cursor=None) -> Page[AuditEntry]
              readings(user_id, *, limit=50) -> list[Reading]       by whom exchanges of this person were opened
    options   get(name) -> str | None · set(name, value)                  what admins change live, kept over restarts
              once(name, value, holds) -> str                       set it unless there is one that holds
    samples   add(span), trim()                                     the second lets go of what is too old
              since(when) -> list[Span]                                   oldest first
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loguru import logger
from sqlmodel import Session

from storage import backup
from storage.api_keys import ApiKeys
from storage.audit import Audit
from storage.backup import Done
from storage.checkup import Checkup, check_up
from storage.conversations import Conversations
from storage.database import Database, prepare_file
from storage.erasures import Erasures
from storage.exchanges import Exchanges
from storage.feedback import FeedbackGiven
from storage.idempotency import Idempotency
from storage.identities import Identities
from storage.invites import Invites
from storage.options import Options
from storage.retention import Retention
from storage.reviews import Reviews
from storage.samples import Samples
from storage.schema import is_newest
from storage.second_factors import SecondFactors
from storage.sessions import Sessions
from storage.sign_in_links import SignInLinks
from storage.templates import Templates
from storage.turns import Turns
from storage.users import Users

if TYPE_CHECKING:
    from psycopg import Connection

    from storage.cluster import Cluster
    from storage.joining import Joining


class Store:
    """The store of one database. `open` before use; `close` writes what is queued."""

    def __init__(self, url: str, *, goes_on: bool = False) -> None:
        """`url` is SQLAlchemy's: sqlite:///path or postgresql+psycopg://... Raises StorageError for another.

        `goes_on`: answers go on while nothing can be logged, so new conversations and heads wait in memory meanwhile.
        """
        self._database = Database(url, goes_on=goes_on)
        self.cluster: Cluster | None = None  # the processes on this database, where there may be several
        self._claim: Connection[Any] | None = None  # what has it to ourselves, where it could be others' as well
        self.users = Users(self._database)
        self.sessions = Sessions(self._database)
        self.api_keys = ApiKeys(self._database)
        self.conversations = Conversations(self._database)
        self.turns = Turns(self._database)
        self.exchanges = Exchanges(self._database)
        self.idempotency = Idempotency(self._database)
        self.feedback = FeedbackGiven(self._database)
        self.templates = Templates(self._database)
        self.erasures = Erasures(self._database)
        self.reviews = Reviews(self._database)
        self.retention = Retention(self._database)
        self.audit = Audit(self._database)
        self.options = Options(self._database)
        self.samples = Samples(self._database)
        self.invites = Invites(self._database)
        self.second_factors = SecondFactors(self._database)
        self.identities = Identities(self._database)
        self.sign_in_links = SignInLinks(self._database)

    def open(self, *, beside: bool = False, joining: "Joining | None" = None) -> None:
        """Make or migrate the database, and mark what a crash left unfinished as interrupted.

        `beside` a running server neither is done: what is unfinished is at work. `joining` others on a PostgreSQL, only
        what those left who are dead; without it PostgreSQL is this process's alone.

        Raises StorageError with a sentence for a database that is unreadable, damaged, foreign or of a newer version,
        and for one that others have, or have not, to themselves.
        """
        if beside:
            self._database.start(self.exchanges.look)
            return
        self.migrate()
        try:
            interrupted = self._database.start(self._first(joining))
        except BaseException:
            self.close()
            raise
        if interrupted:
            logger.warning("{} exchanges were interrupted when the server went down", interrupted)

    def _first(self, joining: "Joining | None") -> "Callable[[Session], int]":
        """What is done before anything else; how many exchanges it found interrupted."""
        if joining:
            from storage.cluster import Cluster  # with psycopg, which SQLite does without

            self.cluster = cluster = Cluster(self._database, joining)

            def join(session: Session) -> int:
                self.exchanges.look(session)
                return cluster.join(session)

            return join
        if not self._database.sqlite:
            from storage.claim import claim

            self._claim = claim(self._database.url, alone=True)
        return self.exchanges.opened

    def migrate(self, report: Done | None = None) -> None:
        """Make the database or bring it to this version's schema; `report`: steps of that. Raises StorageError."""
        if self._database.sqlite:
            prepare_file(self._database.url)
        if not is_newest(self._database.url):
            from storage.migrate import migrate  # Alembic; most starts do without, and are the quicker for it

            migrate(self._database.url, report=report)

    def check_up(self) -> Checkup:
        """How a PostgreSQL database stands; see storage/checkup.py. Needs no `open`."""
        return check_up(self._database.url)

    # --- copies; see storage/backup.py ---

    def backup(self, to: Path, report: Done) -> None:
        """Needs no `open`."""
        backup.backup(self._database.url, to, report)

    def stage(self, source: Path, copied: Done, migrated: Done) -> None:
        """Lay a copy with this version's schema beside the database, which may be in use. Needs no `open`."""
        staging = backup.stage(self._database.url, source, copied)
        try:
            if not is_newest(staging):
                from storage.migrate import migrate

                migrate(staging, report=migrated)
            backup.make_ready(self._database.url)
        except BaseException:
            backup.unstage(self._database.url)
            raise

    def is_staged(self) -> bool:
        return backup.is_staged(self._database.url)

    def withdraw(self) -> bool:
        return backup.withdraw(self._database.url)

    def unstage(self) -> None:
        backup.unstage(self._database.url)

    def give_up_log(self) -> None:
        """Before `put_in_place`, and while the copy can still be withdrawn: others are waited for."""
        backup.give_up_log(self._database.url)

    def put_in_place(self) -> Path | None:
        """Must not be open, here or elsewhere."""
        return backup.put_in_place(self._database.url)

    def close(self) -> None:
        """Write what is queued, then close. May be called twice."""
        self._database.close()
        if self.cluster:
            self.cluster.close()
            self.cluster = None
        if self._claim:
            self._claim.close()
