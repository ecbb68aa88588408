"""A copy of a SQLite database while it is in use, and putting one back. PostgreSQL has pg_dump for that.

Raises StorageError with a sentence that says what to do. Knows no table but Alembic's.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from storage.errors import StorageError

PAGES = 500  # copied between two reports

Done = Callable[[int, int], None]  # pages that are copied, or steps that are done, and how many there are


def backup(url: sa.URL, to: Path, report: Done) -> None:
    """Write the database as it is at this moment into a new file; whoever uses it is not held up."""
    source = _file(url)
    if to.exists():
        raise StorageError(f"{to} is there already; name a new file.")
    if not source.exists():
        raise StorageError(f"There is no database {source} to copy.")
    _copy(source, to, report)


def restore(url: sa.URL, source: Path, report: Done) -> Path | None:
    """Put a copy in the place of the database and return where the one before is kept now, if there was one.

    Nobody else may use the database meanwhile; that is for the caller to see to.
    """
    target = _file(url)
    if not source.exists():
        raise StorageError(f"There is no file {source}.")
    _check(source)
    fresh = target.with_name(target.name + ".restoring")
    fresh.unlink(missing_ok=True)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _copy(source, fresh, report)
    kept = _set_aside(target) if target.exists() else None
    os.replace(fresh, target)  # until here there is the old one, from here on the new one, whenever this is killed
    return kept


def _file(url: sa.URL) -> Path:
    if url.get_backend_name() != "sqlite":
        raise StorageError("This is for SQLite; copy a PostgreSQL database with pg_dump and pg_restore.")
    return Path(url.database or "")


def _copy(source: Path, to: Path, report: Done) -> None:
    partial = to.with_name(to.name + ".partial")
    try:
        os.close(os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600))
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


def _reading(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=10)


def _set_aside(target: Path) -> Path:
    """Give the database a second name that it keeps, with what its log still holds written into it."""
    kept = target.with_name(f"{target.name}.before-{datetime.now():%Y%m%d-%H%M%S-%f}")
    # A damaged one may be why another is put in its place.
    with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(target, timeout=10)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.link(target, kept)
    for end in ("-wal", "-shm"):  # what they hold belongs to the old one, and must not meet the new
        if (file := target.with_name(target.name + end)).exists():
            os.replace(file, kept.with_name(kept.name + end))
    return kept
