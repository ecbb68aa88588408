"""The store: one object that is passed to the faces, with one attribute a subject.

    store = Store("sqlite:///data/qdesk.db"); store.open()     # migrates, marks unfinished exchanges `interrupted`
    user = await store.users.create("ada", password_hash, "staff")
    ...
    store.close()                                  # writes what is queued, then closes

Every method that touches the database is async and runs on the writer thread (writes) or a reader thread (reads);
`exchanges.record` alone is a plain call that queues and returns a future, and `exchanges.health` one that looks.

What they raise: StorageUnavailable when the database is in trouble (a change waits ten seconds for the trouble to end
and is then withdrawn for good; recorded exchanges wait as long as it takes), SearchTooSlow from searches, ValueError
for a cursor that is not one of that list. Each carries a sentence that may be shown to people.

    users     create(name, password_hash, role) -> User | None           None: the name is taken
              create_first(name, password_hash) -> User | None          the first admin; None: there is one already
              get(id) / by_name(name) -> User | None
              password_hash(name) -> tuple[User, str] | None
              list() -> list[User] · count() -> int
              set_role(id, role) / set_disabled(id, flag) -> bool         False: the last administrator, or nobody
              set_password(id, password_hash)
              set_preferences(id, *, language=None, theme=None)           None = leave as it is
              seen(id)
    sessions  create(user_id, token_hash, agent, expires_at) -> Session
              find(token_hash) -> Session | None                    None too when expired or the account is disabled
              seen(id) · list(user_id) -> list[Session] · end(id) · end_all(user_id)
    api_keys  create(user_id, name, key_hash, prefix) -> ApiKey
              find(key_hash) -> tuple[ApiKey, User] | None                None too when the account is disabled
              list(user_id) -> list[ApiKey] · revoke(id, user_id) -> bool · seen(id)
    conversations
              create(user_id, *, title="", system_prompt=None, sampling=None) -> Conversation
              get(id, user_id) -> Conversation | None               None too when it is somebody else's or deleted
              list(user_id, *, limit=100, cursor=None) -> Page[Conversation]     by updated_at
              rename(id, user_id, title) / delete(id, user_id) / restore(id, user_id) -> bool
              configure(id, user_id, *, system_prompt, sampling) -> bool
              set_head(id, user_id, exchange_id) -> bool                  also moves updated_at
              exchanges(id, user_id) -> list[Exchange]              the whole tree, oldest first
              search(user_id, text, *, limit=30) -> list[Hit]
    exchanges record(exchange) -> asyncio.Future[None]              insert or update; done when committed
              health() -> str | None
              get(id) -> Exchange | None
              conversation(conversation_id) -> list[Exchange]             for reviewers: anybody's, deleted or not
              search(filter, *, limit=50, cursor=None) -> Page[ExchangeRow]      newest first
              usage(since) -> dict[str, tuple[int, int]]                  by user id: requests, completion tokens
              delete_before(when) -> int                            retention; leaves the search index too
    idempotency
              find(caller, key) -> Asked | None                     what was asked under this key within a day
              add(caller, key, body_hash, exchange_ids)
    audit     add(actor, action, target="", detail="")
              list(*, action="", actor="", limit=100, cursor=None) -> Page[AuditEntry]   action: its beginning
    options   get(name) -> str | None · set(name, value)                  what admins change live, kept over restarts
"""

from pathlib import Path

from loguru import logger

from storage.api_keys import ApiKeys
from storage.audit import Audit
from storage.backup import Done, backup, restore
from storage.conversations import Conversations
from storage.database import Database, prepare_file
from storage.exchanges import Exchanges
from storage.idempotency import Idempotency
from storage.migrate import migrate
from storage.options import Options
from storage.sessions import Sessions
from storage.users import Users


class Store:
    """The store of one database. `open` before use; `close` writes what is queued."""

    def __init__(self, url: str) -> None:
        """`url` is SQLAlchemy's: sqlite:///path or postgresql+psycopg://... Raises StorageError for another."""
        self._database = Database(url)
        self.users = Users(self._database)
        self.sessions = Sessions(self._database)
        self.api_keys = ApiKeys(self._database)
        self.conversations = Conversations(self._database)
        self.exchanges = Exchanges(self._database)
        self.idempotency = Idempotency(self._database)
        self.audit = Audit(self._database)
        self.options = Options(self._database)

    def open(self, *, beside: bool = False) -> None:
        """Make or migrate the database, and mark what a crash left unfinished as interrupted.

        `beside` a running server neither is done: what is unfinished is at work.

        Raises StorageError with a sentence for a database that is unreadable, damaged, foreign or of a newer version.
        """
        if beside:
            self._database.start(self.exchanges.look)
            return
        self.migrate()
        if interrupted := self._database.start(self.exchanges.opened):
            logger.warning("{} exchanges were interrupted when the server went down", interrupted)

    def migrate(self) -> None:
        """Make the database or bring it to this version's schema. Raises StorageError."""
        if self._database.sqlite:
            prepare_file(self._database.url)
        migrate(self._database.url)

    def backup(self, to: Path, report: Done) -> None:
        """See storage/backup.py. Needs no `open`."""
        backup(self._database.url, to, report)

    def restore(self, source: Path, report: Done) -> Path | None:
        """See storage/backup.py. Must not be open, here or elsewhere."""
        return restore(self._database.url, source, report)

    def close(self) -> None:
        """Write what is queued, then close. May be called twice."""
        self._database.close()
