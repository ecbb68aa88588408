"""Several processes on one PostgreSQL: which of them live, what they tell each other, and the text of their places.

Each gives a sign of life every `heartbeat_s`. One that has given none for DEAD_AFTER of them is dead: whoever notices
marks what it left unfinished as interrupted, and no other process's. Clocks of machines may differ, so all times are
the database's. What is told is told by NOTIFY; a process that was cut off hears the topic "all" when it is back.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import sqlalchemy as sa
from loguru import logger
from sqlalchemy.dialects.postgresql import insert
from sqlmodel import Session, col

from engine.types import Status, new_id
from storage.claim import KEEPALIVE, claim
from storage.database import CHANNEL, Database, notify
from storage.errors import StorageError
from storage.joining import Joining, Member
from storage.models import Base, ExchangeTable, PlacesRow, ProcessRow
from storage.search import UNFINISHED
from storage.writer import Writer

DEAD_AFTER = 3  # signs of life that are missing
LOOK_S = 0.5  # how soon a listener notices that it is to end
AGAIN_S = 1.0  # between two tries to listen again
IMPATIENT = {"options": f"{KEEPALIVE} -c idle_in_transaction_session_timeout=10s"}  # with who stands still
LONGEST = 7000  # bytes that can be told at once; PostgreSQL takes 8,000

Hear = Callable[[str, str], None]  # a topic and a text; called on the listener's thread
Change = Callable[[str, float], str]
Written = tuple[str, float]

_PLACES, _PROCESSES = Base.metadata.tables["places"], Base.metadata.tables["processes"]
_NOW = sa.func.clock_timestamp()


class Cluster:
    def __init__(self, database: Database, joining: Joining) -> None:
        """Raises StorageError where a process has the database to itself."""
        self.process, self.heartbeat_s = new_id(), joining.heartbeat_s
        self.members: list[Member] = []  # as of the last sign of life, this one included; by their start
        self._database, self._joining = database, joining
        self._connection: psycopg.Connection[Any] | None = claim(database.url, alone=False)
        self._engine = sa.create_engine(
            database.url, pool_size=1, max_overflow=0, pool_pre_ping=True, hide_parameters=True, connect_args=IMPATIENT
        )
        # Of its own: while the places are locked by another process, exchanges are written all the same.
        self._writer = Writer(self._engine)
        self._lived_s = time.monotonic()  # when the last sign of life was given
        self._closing = threading.Event()
        self._listener: threading.Thread | None = None

    # --- coming and going ---

    def join(self, session: Session) -> int:
        """For the store when it opens: be one of them. How many exchanges of dead ones were marked interrupted?

        Raises StorageError where another one has another session secret.
        """
        dead_s = timedelta(seconds=self.heartbeat_s * DEAD_AFTER)
        living = sa.select(col(ProcessRow.name)).where(
            col(ProcessRow.secret) != self._joining.secret, col(ProcessRow.seen_at) >= _NOW - dead_s
        )
        if name := session.connection().execute(living).scalar():
            raise StorageError(
                f"The Qdesk at {name} on this database has another session secret. Give all of them the same "
                "QDESK_SESSION_SECRET, or the same data folder."
            )
        self._database.process = self.process
        self._writer.start()
        return self._live(session)

    def close(self) -> None:
        """Write what is queued, and be none of them any more."""
        self._writer.close()
        self._closing.set()
        if self._listener:
            self._listener.join()
        if self._connection:
            self._connection.close()
        try:
            with Session(self._engine) as session:
                session.exec(sa.delete(ProcessRow).where(col(ProcessRow.id) == self.process))
                notify(session, self.process, "places")
                session.commit()
        except sa.exc.DBAPIError as error:
            logger.warning("the other processes will take this one for dead: {}", error.orig)
        self._engine.dispose()

    async def beat(self) -> list[Member]:
        """Give a sign of life, and look after those that give none. Returns who lives."""

        def work(session: Session) -> list[Member]:
            interrupted = self._live(session)
            if interrupted:
                logger.warning("{} exchanges were interrupted: the process that answered them is gone", interrupted)
            rows = sa.select(_PROCESSES).order_by(_PROCESSES.c.started_at, _PROCESSES.c.id)
            return [Member(row.id, row.name, row.started_at) for row in session.connection().execute(rows)]

        self.members = await self._writer.submit(work)
        self._lived_s = time.monotonic()
        return self.members

    def _live(self, session: Session) -> int:
        """Be seen, forget the dead, and end what they left. How much was that?

        Whoever could give no sign itself, because the database was away, takes nobody else for dead at once.
        """
        dead_s = self.heartbeat_s * DEAD_AFTER
        seen = sa.update(ProcessRow).where(col(ProcessRow.id) == self.process).values(seen_at=_NOW)
        if session.exec(seen).rowcount == 0:  # the first time, or others took us for dead
            row = {"id": self.process, "name": self._joining.name, "secret": self._joining.secret}
            session.exec(sa.insert(ProcessRow).values(**row, started_at=_NOW, seen_at=_NOW))
        if time.monotonic() - self._lived_s <= dead_s:
            dead = col(ProcessRow.seen_at) < _NOW - timedelta(seconds=dead_s)
            session.exec(sa.delete(ProcessRow).where(dead))
        left = (
            sa.update(ExchangeTable)
            .where(col(ExchangeTable.status).in_(UNFINISHED))
            .where(col(ExchangeTable.process).not_in(sa.select(col(ProcessRow.id))))
            .values(status=str(Status.INTERRUPTED), finished_at=datetime.now(UTC))
        )
        return session.exec(left).rowcount

    # --- the places: the Paper of engine/shared_places.py ---

    def change(self, change: Change) -> "asyncio.Future[Written]":
        """Change the text while nobody else does. Raises, by the future, what `change` raises."""

        def work(session: Session) -> Written:
            connection = session.connection()
            locked = sa.select(_PLACES.c.text).where(_PLACES.c.id == 1).with_for_update()
            text = connection.execute(locked).scalar()
            if text is None:  # nobody was ever here; of two that are the first, one waits here for the other
                connection.execute(insert(_PLACES).values(id=1, text="").on_conflict_do_nothing())
                text = connection.execute(locked).scalar_one()
            now = _seconds(session)
            changed = change(text, now)
            if changed != text:
                session.exec(sa.update(PlacesRow).values(text=changed))
            notify(session, self.process, "places")
            return changed, now

        return self._writer.submit(work)

    async def look(self) -> Written:
        def work(session: Session) -> Written:
            text = session.connection().execute(sa.select(_PLACES.c.text)).scalar()
            return text or "", _seconds(session)

        return await self._database.read(work)

    # --- what is told ---

    def tell(self, topic: str, text: str = "") -> None:
        """Let the other processes hear this. What cannot be told, because the database is away, is lost."""
        if len(text.encode()) > LONGEST:
            raise ValueError("too long to be told")
        self._writer.submit(lambda session: notify(session, self.process, topic, text))

    def listen(self, hear: Hear) -> None:
        """Hear what others tell from now on, and "all" now and whenever something may have been missed."""
        self._listener = threading.Thread(target=self._listen, args=[hear], name="storage-listen", daemon=True)
        self._listener.start()

    def _listen(self, hear: Hear) -> None:
        while not self._closing.is_set():
            try:
                if self._connection is None:
                    self._connection = claim(self._database.url, alone=False)
                self._hear(self._connection, hear)
            except (psycopg.Error, StorageError) as error:
                logger.warning("the other processes are not heard: {}", error)
                if self._connection:
                    self._connection.close()
                self._connection = None
                self._closing.wait(AGAIN_S)

    def _hear(self, connection: "psycopg.Connection[Any]", hear: Hear) -> None:
        connection.execute(f"LISTEN {CHANNEL}")
        hear("all", "")
        while not self._closing.is_set():
            for told in connection.notifies(timeout=LOOK_S):
                process, topic, text = told.payload.split(" ", 2)
                if process != self.process:
                    hear(topic, text)


def _seconds(session: Session) -> float:
    """The database's clock, in seconds since 1970."""
    return float(session.connection().execute(sa.select(sa.extract("epoch", _NOW))).scalar_one())
