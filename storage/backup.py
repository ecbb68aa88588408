"""A copy of a SQLite database while it is in use, and putting one back. PostgreSQL has pg_dump for that.

Raises StorageError with a sentence that says what to do. Knows no table but Alembic's.
"""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from engine.new_file import new_file
from storage.errors import StorageError

PAGES = 500  # copied between two reports
OTHERS_S, LOOK_S = 10.0, 0.1  # for other programs to let go of the database, and between two looks
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# Ends of a copy's name: not ready yet, ready for its place, and just being put there.
STAGING, STAGED, TAKEN = ".restoring.new", ".restoring", ".taking"

Done = Callable[[int, int], None]  # pages that are copied, or steps that are done, and how many there are


def backup(url: sa.URL, to: Path, report: Done) -> None:
    """Write the database as it is at this moment into a new file; whoever uses it is not held up."""
    source = _file(url)
    if to.exists():
        raise StorageError(f"{to} is there already; name a new file.")
    if not source.exists():
        raise StorageError(f"There is no database {source} to copy.")
    _copy(source, to, report)


def stage(url: sa.URL, source: Path, report: Done) -> sa.URL:
    """Lay a copy that passes all checks beside the database, and return it as a database; `make_ready` comes last."""
    target = _file(url)
    if not source.exists():
        raise StorageError(f"There is no file {source}.")
    _check(source)
    unstage(url)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    owner_of = target if target.exists() else target.parent  # who must be able to open what root restores
    _copy(source, staging := _beside(target, STAGING), report, owner_of)
    return url.set(database=str(staging))


def make_ready(url: sa.URL) -> None:
    """From here on the copy may be put in place, by whichever process."""
    os.replace(_beside(_file(url), STAGING), _beside(_file(url), STAGED))


def is_staged(url: sa.URL) -> bool:
    """Whether a copy lies there that can be put in place, also one that was taken by a process that was killed then."""
    return url.get_backend_name() == "sqlite" and any(_beside(_file(url), end).exists() for end in (STAGED, TAKEN))


def withdraw(url: sa.URL) -> bool:
    """Take back what was staged. False: too late, it is put in place at this moment or has been already."""
    try:
        _beside(_file(url), STAGED).unlink()
    except FileNotFoundError:
        return False
    return True


def unstage(url: sa.URL) -> None:
    """Remove whatever is left of copies that were to be put in place."""
    if url.get_backend_name() != "sqlite":
        return
    for end in (STAGING, STAGED, TAKEN):
        for of_it in ("-journal", "-wal", "-shm", ".partial", ""):  # another copy must not meet a journal of this one
            _beside(_file(url), end + of_it).unlink(missing_ok=True)


def give_up_log(url: sa.URL) -> None:
    """Write into the database what its log still holds, if nobody else has it open; that is waited for.

    SQLite does that for the only connection alone, so whoever would go on writing into a database that is set aside is
    found by it too. A damaged one stays as it is: that may be why another is to take its place.
    """
    target, until = _file(url), time.monotonic() + OTHERS_S
    while target.exists():
        try:
            with closing(sqlite3.connect(target, timeout=0)) as database:
                database.execute("SELECT count(*) FROM sqlite_master").fetchone()  # else the log is not found
                database.execute("PRAGMA journal_mode=DELETE").fetchone()
            return
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code in DAMAGED:
                return
            if code != sqlite3.SQLITE_BUSY:
                told = f"What the log of {target} holds cannot be written into it: {error}."
                raise StorageError(f"{told} Mend that, or move both away, and restore again.") from error
            if time.monotonic() > until:
                raise StorageError("Another program has the database open; end it and restore again.") from error
        time.sleep(LOOK_S)


def put_in_place(url: sa.URL) -> Path | None:
    """Put what is staged in the place of the database, and return where the one before is kept now, if there was one.

    After `give_up_log`. Nobody else may use the database meanwhile; that is for the caller to see to. Whenever this is
    killed there is the old database or the new one.
    """
    target = _file(url)
    taken = _beside(target, TAKEN)
    try:
        with suppress(FileNotFoundError):
            os.replace(_beside(target, STAGED), taken)  # from here on it cannot be withdrawn
        if not taken.exists():
            raise StorageError("The copy was withdrawn; the database is as it was.")
        if not os.access(taken, os.R_OK | os.W_OK):
            raise StorageError(f"{taken} belongs to another user; run `restore` as the user that the server runs as.")
        kept = _set_aside(target) if target.exists() else None
        os.replace(taken, target)
    except OSError as error:
        raise StorageError(f"The copy cannot be put in the place of {target}: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            taken.unlink(missing_ok=True)
    return kept


def _file(url: sa.URL) -> Path:
    if url.get_backend_name() != "sqlite":
        raise StorageError("This is for SQLite; copy a PostgreSQL database with pg_dump and pg_restore.")
    return Path(url.database or "")


def _copy(source: Path, to: Path, report: Done, owner_of: Path | None = None) -> None:
    partial = to.with_name(to.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        os.close(new_file(partial, owner_of=owner_of))
        with closing(_reading(source)) as one, closing(sqlite3.connect(partial)) as other:
            # An open transaction keeps all steps on one state; without it the copy would begin anew at every change.
            one.execute("BEGIN")
            one.execute("SELECT count(*) FROM sqlite_master").fetchone()
            one.backup(other, pages=PAGES, progress=lambda _, left, total: report(total - left, total), sleep=0)
            other.execute("PRAGMA journal_mode=DELETE")
        _check(partial)
        os.replace(partial, to)
    except (sqlite3.Error, OSError) as error:
        raise StorageError(f"{source} cannot be copied to {to}: {error}.") from error
    finally:
        partial.unlink(missing_ok=True)


def _check(file: Path) -> None:
    try:
        with closing(_reading(file)) as database:
            ours = database.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
            sound = database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except sqlite3.Error as error:
        raise StorageError(f"{file} is no database: {error}.") from error
    if not ours:
        raise StorageError(f"{file} is not a database of Qdesk.")
    if not sound:
        raise StorageError(f"{file} is damaged.")


def _beside(target: Path, end: str) -> Path:
    return target.with_name(target.name + end)


def _reading(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=10)


def _set_aside(target: Path) -> Path:
    """Give the database a second name that it keeps."""
    kept = _beside(target, f".before-{datetime.now():%Y%m%d-%H%M%S-%f}")
    os.link(target, kept)
    for end in ("-journal", "-wal", "-shm"):  # of a damaged one; what they hold must not meet the new
        if (file := _beside(target, end)).exists():
            os.replace(file, _beside(kept, end))
    return kept
