"""The one thread that writes. Work queues up, goes into a transaction together, and fails alone.

A database in trouble (full disk, foreign lock, server away) loses nothing: the batch goes back to the head of the
queue and is tried again until it is written, while `health()` says why. Knows no table but the one it probes.

The idea of one write thread with results returned by call_soon_threadsafe is datasette's.
"""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from loguru import logger
from sqlmodel import Session

from storage.errors import StorageUnavailable

R = TypeVar("R")
Work = Callable[[Session], R]

BATCH = 500  # pieces of work in one transaction
FIRST_RETRY_S, LAST_RETRY_S = 0.1, 2.0
CLOSE_PATIENCE_S = 10.0  # close() waits this long for a database in trouble

_TROUBLE = {
    sqlite3.SQLITE_BUSY: "The database is locked by another program.",
    sqlite3.SQLITE_LOCKED: "The database is locked by another program.",
    sqlite3.SQLITE_FULL: "The disk is full.",
    sqlite3.SQLITE_READONLY: "The database cannot be written: the file or its disk is read-only, or was replaced.",
    sqlite3.SQLITE_IOERR: "The disk reports an error, or is full.",
    sqlite3.SQLITE_CANTOPEN: "The database file cannot be opened.",
    sqlite3.SQLITE_CORRUPT: "The database file is damaged.",
    sqlite3.SQLITE_NOTADB: "The database file is damaged.",
    sqlite3.SQLITE_NOMEM: "There is not enough memory to write to the database.",
}


class Queued(Generic[R]):
    """A piece of work and those who wait for it."""

    __slots__ = ("futures", "withdrawn", "work")

    def __init__(self, work: Work[R]) -> None:
        self.work = work
        self.futures: list[asyncio.Future[R]] = []
        self.withdrawn = False

    def future(self) -> asyncio.Future[R]:
        """A future of the running loop; shared, so that work replaced every second does not collect them."""
        loop = asyncio.get_running_loop()
        for future in self.futures:
            if future.get_loop() is loop and not future.done():
                return future
        self.futures.append(loop.create_future())
        return self.futures[-1]

    def settle(self, result: R | None, error: BaseException | None) -> None:
        for future in self.futures:
            with suppress(RuntimeError):  # the loop is closed; nobody waits any more
                future.get_loop().call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class Writer:
    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._queue: dict[object, Queued[Any]] = {}  # in order of arrival
        self._running: dict[object, Queued[Any]] = {}
        self._wake = threading.Condition()
        self._trouble: str | None = None
        self._closing_until: float | None = None  # time.monotonic()
        self._thread = threading.Thread(target=self._run, name="storage-write", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def health(self) -> str | None:
        """Why nothing can be written at the moment, in a sentence; None when writing works."""
        return self._trouble

    def submit(self, work: Work[R], key: object = None) -> asyncio.Future[R]:
        """Queue work and return at once. Queued work of the same `key` is replaced and keeps its place."""
        with self._wake:
            if self._closing_until:
                raise StorageUnavailable("The database is closed.")
            queued = self._queue.setdefault(object() if key is None else key, Queued(work))
            queued.work = work
            self._wake.notify()
            return queued.future()

    def withdraw(self, future: asyncio.Future[Any]) -> None:
        """Give up on work: its future fails with StorageUnavailable unless the work is being committed right now."""
        with self._wake:
            for queued in [*self._queue.values(), *self._running.values()]:
                if future in queued.futures:
                    queued.withdrawn = True
            self._wake.notify()

    def close(self) -> None:
        """Write what is queued and end the thread. What a database in trouble does not take in time is logged."""
        with self._wake:
            self._closing_until = self._closing_until or time.monotonic() + CLOSE_PATIENCE_S
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    # --- on the writer thread ---

    def _run(self) -> None:
        retry_s = FIRST_RETRY_S
        while self._take():
            try:
                outcomes = self._commit()
            except Exception as error:
                self._put_back(error)
                self._pause(retry_s)
                retry_s = min(retry_s * 2, LAST_RETRY_S)
                continue
            self._recovered()
            retry_s = FIRST_RETRY_S
            for queued, (result, failure) in outcomes:
                queued.settle(result, failure)

    def _take(self) -> bool:
        """Wait for work and move a batch of it to `_running`. False: closed, and all is written or given up."""
        with self._wake:
            self._wake.wait_for(lambda: self._queue or self._trouble or self._closing_until)
            if self._closing_until and self._queue and self._trouble and time.monotonic() > self._closing_until:
                logger.error("{} changes are not written: {}", len(self._queue), self._trouble)
                for queued in self._queue.values():
                    queued.withdrawn = True
            self._drop_withdrawn()
            for key in list(self._queue)[:BATCH]:
                self._running[key] = self._queue.pop(key)
            return bool(self._running) or not self._closing_until

    def _commit(self) -> list[tuple[Queued[Any], tuple[Any, Exception | None]]]:
        """Run the batch in one transaction, each piece in a savepoint. Raises what must be tried again."""
        with self._engine.connect() as connection:
            if self._trouble:
                _probe(connection)
            with connection.begin():
                outcomes = [(queued, _run_alone(connection, queued.work)) for queued in self._running.values()]
        with self._wake:
            self._running = {}
        return outcomes

    def _put_back(self, error: Exception) -> None:
        reason = sentence(error)
        if self._trouble != reason:
            logger.warning("writing to the database is held up: {}", reason)
        with self._wake:
            self._trouble = reason
            for key, older in self._running.items():
                if newer := self._queue.pop(key, None):
                    older.work = newer.work
                    older.futures += newer.futures
            self._queue = {**self._running, **self._queue}
            self._running = {}
            self._drop_withdrawn()

    def _drop_withdrawn(self) -> None:
        for key, queued in list(self._queue.items()):
            if queued.withdrawn:
                del self._queue[key]
                queued.settle(None, StorageUnavailable(self._trouble or "The database is too slow."))

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with self._wake:
            while (left := until - time.monotonic()) > 0:
                self._wake.wait(left)
                self._drop_withdrawn()

    def _recovered(self) -> None:
        if self._trouble:
            logger.info("writing to the database works again")
        self._trouble = None


def _run_alone(connection: sa.Connection, work: Work[R]) -> tuple[R | None, Exception | None]:
    """Run one piece of work in a savepoint: (result, None), or (None, why it failed) with nothing changed."""
    session = Session(connection, expire_on_commit=False, join_transaction_mode="create_savepoint")
    try:
        result = work(session)
        session.commit()  # releases the savepoint; the batch is committed later
    except Exception as error:
        if is_trouble(error):
            with suppress(sa.exc.DBAPIError):  # SQLite may have undone the transaction with all its savepoints
                session.close()
            raise
        session.close()
        return None, error
    session.close()
    return result, None


def _probe(connection: sa.Connection) -> None:
    """Write for real and leave nothing behind: with an empty queue, too, the trouble must be seen to end."""
    with connection.begin():
        name = {"name": "storage.probe"}
        connection.execute(sa.text("INSERT INTO options (name, value) VALUES (:name, '')"), name)
        connection.execute(sa.text("DELETE FROM options WHERE name = :name"), name)


def is_trouble(error: Exception) -> bool:
    """Whether the database as a whole is in trouble, so that the same work may succeed later."""
    if not isinstance(error, sa.exc.DBAPIError):
        return False
    if isinstance(error.orig, sqlite3.Error):
        return _primary_code(error.orig) in _TROUBLE
    return error.connection_invalidated or isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError)


def sentence(error: Exception) -> str:
    """What is wrong with the database, for people."""
    cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
    if isinstance(cause, sqlite3.Error) and (known := _TROUBLE.get(_primary_code(cause))):
        return known
    return f"The database does not work: {str(cause).strip().partition(chr(10))[0]}"


def _primary_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
