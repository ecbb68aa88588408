"""Engines and threads: one writer, a few readers, and the way back to the event loop.

Knows SQLAlchemy and the two kinds of database, but no table. Nothing here blocks the event loop.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlmodel import Session

from storage.errors import SearchTooSlow, StorageError, StorageUnavailable
from storage.writer import Work, Writer, is_trouble, sentence

R = TypeVar("R")

READERS, SEARCHERS = 4, 2  # threads; searches have their own, so that slow ones hold up nobody who opens a page
SEARCH_LIMIT_S = 20.0
LOCK_WAIT_MS = 2000  # SQLite waits this long for another program's lock; then the writer says so and tries again
MEANWHILE_S = 3.0  # longer than LOCK_WAIT_MS, so that the trouble is known by then
CHANNEL = "qdesk"  # on which processes on one database hear of each other
WRITE_PATIENCE_S = 10.0  # a person's change waits this long for a database in trouble, then it is withdrawn


class Database:
    """Where work on the database is handed in. `read` and `write` run a function of a Session on a thread."""

    def __init__(self, url: str, *, goes_on: bool = False) -> None:
        self.url = _checked(url)
        self._goes_on = goes_on
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self._read_engine = _engine(self.url, readers=READERS + SEARCHERS)
        self._write_engine = _engine(self.url, readers=0)
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="storage-read")
        self._searchers = ThreadPoolExecutor(SEARCHERS, thread_name_prefix="storage-search")
        self.writer = Writer(self._write_engine)
        self.process = ""  # what this process is called among several on one database (storage/cluster.py)

    def start(self, first: Callable[[Session], R]) -> R:
        """Run `first` in a transaction of its own, here and now, and then begin to take work."""
        with Session(self._write_engine) as session:
            result = first(session)
            session.commit()
        self.writer.start()
        return result

    async def read(self, work: Callable[[Session], R]) -> R:
        """Run `work` on a reader thread, on one consistent state of the database. Raises StorageUnavailable."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    async def search(self, work: Callable[[Session], R]) -> R:
        """The same for work that may look through many rows; raises SearchTooSlow after SEARCH_LIMIT_S seconds."""
        return await asyncio.get_running_loop().run_in_executor(self._searchers, self._search, work)

    async def write(self, work: Work[R], *, tells: str = "") -> R:
        """Run `work` in the writer's next transaction; it is committed when this returns.

        `tells` is the topic of which the other processes hear with the commit, if there are any.

        Raises whatever `work` raises, which then has changed nothing, or StorageUnavailable when the database has
        been in trouble for WRITE_PATIENCE_S; the change is then withdrawn.
        """
        if not (tells and self.process):
            return await self._in_time(self.writer.submit(work))

        def tell(session: Session) -> R:
            result = work(session)
            notify(session, self.process, tells)
            return result

        return await self._in_time(self.writer.submit(tell))

    async def keep(self, work: Work[R]) -> asyncio.Future[R]:
        """The same for what answers cannot do without: the returned future is done, and raises as above.

        Where answers go on without the log it may still be open, while the database is in trouble. Nothing is
        withdrawn then; it is written when the trouble is over, in the order in which it came, exchanges included.
        """
        future = self.writer.submit(work)
        if not self._goes_on:
            await self._in_time(future)
        elif not self.writer.health():
            await asyncio.wait([future], timeout=MEANWHILE_S)
        if future.done():
            future.result()
        return future

    async def _in_time(self, future: asyncio.Future[R]) -> R:
        done, _ = await asyncio.wait([future], timeout=WRITE_PATIENCE_S)
        if not done:
            self.writer.withdraw(future)
        return await future

    async def empty_log(self) -> None:
        """Move SQLite's write-ahead log into the database and cut it, so that deleted text is not left in it."""
        if self.sqlite:
            await asyncio.get_running_loop().run_in_executor(self._readers, self._checkpoint)

    def close(self) -> None:
        """Write what is queued, then let go of threads and connections."""
        self.writer.close()
        self._readers.shutdown()
        self._searchers.shutdown()
        self._read_engine.dispose()
        self._write_engine.dispose()

    def _checkpoint(self) -> None:
        connection = self._write_engine.raw_connection()  # waits until the writer has given it back
        try:
            cursor = connection.cursor()
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            cursor.close()
        finally:
            connection.close()

    def _read(self, work: Callable[[Session], R]) -> R:
        with _told_in_a_sentence(), Session(self._read_engine) as session:
            return work(session)

    def _search(self, work: Callable[[Session], R]) -> R:
        with (
            _told_in_a_sentence(),
            Session(self._read_engine) as session,
            _time_limit(session.connection(), SEARCH_LIMIT_S),
        ):
            return work(session)


def notify(session: Session, process: str, topic: str, text: str = "") -> None:
    """Let every process that listens on this PostgreSQL hear of it when this is committed."""
    session.execute(sa.select(sa.func.pg_notify(CHANNEL, f"{process} {topic} {text}")))


@contextmanager
def _told_in_a_sentence() -> Iterator[None]:
    try:
        yield
    except sa.exc.DBAPIError as error:
        if is_trouble(error):
            raise StorageUnavailable(sentence(error)) from error
        raise


@contextmanager
def _time_limit(connection: sa.Connection, seconds: float) -> Iterator[None]:
    driver = connection.connection.driver_connection
    if isinstance(driver, sqlite3.Connection):
        until = time.monotonic() + seconds
        driver.set_progress_handler(lambda: time.monotonic() > until, 10_000)
    else:
        connection.exec_driver_sql(f"SET LOCAL statement_timeout = {int(seconds * 1000)}")
        connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_custom_plan")  # each word is as rare as it is
    try:
        yield
    except sa.exc.OperationalError as error:
        code = getattr(error.orig, "sqlite_errorcode", None) or getattr(error.orig, "sqlstate", None)
        if code not in (sqlite3.SQLITE_INTERRUPT, "57014"):  # PostgreSQL's query_canceled
            raise
        raise SearchTooSlow(f"The search took longer than {seconds:g} seconds; choose a shorter time.") from error
    finally:
        if isinstance(driver, sqlite3.Connection):
            driver.set_progress_handler(None, 0)


def prepare_file(url: sa.URL) -> None:
    """Make SQLite's folder (0700) and file (0600) where they are missing. Raises StorageError."""
    path = Path(url.database or "")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except OSError as error:
        raise StorageError(f"The database {path} cannot be opened: {error.strerror}.") from error


def _checked(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
        parsed.get_dialect()
    except sa.exc.NoSuchModuleError as error:
        raise StorageError(
            f"There is no database driver {parsed.drivername}; write sqlite or postgresql+psycopg."
        ) from error
    except sa.exc.ArgumentError as error:
        raise StorageError(
            f"{url!r} is not a database URL; write sqlite:///path or postgresql+psycopg://..."
        ) from error
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise StorageError(f"The database must be SQLite or PostgreSQL, not {parsed.get_backend_name()}.")
    if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise StorageError("The SQLite database must be a file: sqlite:///path.")
    return parsed


def _engine(url: sa.URL, *, readers: int) -> sa.Engine:
    """An engine for that many readers, or for the one writer when 0."""
    size = {"pool_size": readers or 1, "max_overflow": 0, "pool_pre_ping": url.get_backend_name() != "sqlite"}
    try:
        engine = sa.create_engine(url, hide_parameters=True, **size)
    except ModuleNotFoundError as error:
        raise StorageError(f"The driver for {url.drivername} is not installed: pip install {error.name}.") from error
    if url.get_backend_name() == "sqlite":
        sa.event.listen(engine, "connect", _pragmas(query_only=bool(readers)))
        sa.event.listen(engine, "begin", _begin("BEGIN" if readers else "BEGIN IMMEDIATE"))
    return engine


def _begin(statement: str) -> Callable[[sa.Connection], None]:
    """pysqlite begins transactions late and as readers; a reader that turns writer may fail at once. We begin."""

    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(statement)

    return begin


def _pragmas(*, query_only: bool) -> Callable[[sqlite3.Connection, Any], None]:
    def connect(connection: sqlite3.Connection, _: Any) -> None:
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout={LOCK_WAIT_MS}",
            "journal_mode=WAL",
            "synchronous=FULL",  # a commit is on the disk, also after a power cut
            "foreign_keys=ON",
            "secure_delete=ON",  # deleted text is overwritten
            f"query_only={int(query_only)}",
        ):
            connection.execute(f"PRAGMA {pragma}")

    return connect
