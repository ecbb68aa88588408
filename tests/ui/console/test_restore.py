"""`restore` where no server runs: what is put back, what is refused, and what a kill at any step leaves."""

import os
import shutil
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from storage import Store, backup
from storage.errors import StorageError
from tests.databases import add_accounts, new_database
from tests.disks import fill_up, small_disk_at
from tests.ui.console.test_commands import command
from ui.starting import Claim


class Killed(BaseException):
    """Nobody catches it, as nobody catches a kill."""


def names(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {str(name) for (name,) in database.execute("select name from users")}


def left_over(data: Path) -> list[str]:
    """What is in the folder beside the database, its log and the locks."""
    return sorted(
        file.name for file in data.iterdir() if file.suffix != ".lock" and not file.name.startswith("qdesk.db-")
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with a database that has gone on since the copy beside the folder was made."""
    data = tmp_path / "data"
    new_database(data / "qdesk.db", {"before": "admin"})
    assert command(data, "backup", tmp_path / "copy.db") == 0
    add_accounts(data / "qdesk.db", {"after": "staff"})
    return data


@pytest.fixture
def copy(data: Path) -> Path:
    return data.with_name("copy.db")


def test_restore_puts_the_copy_back_and_keeps_what_was_there(data: Path, copy: Path, logged: list[str]) -> None:
    assert command(data, "restore", copy) == 0
    assert logged[-1] == "copying back: 100 %"
    assert names(data / "qdesk.db") == {"before"}
    [kept] = data.glob("qdesk.db.before-*")
    assert names(kept) == {"before", "after"}
    assert left_over(data) == ["qdesk.db", kept.name]


@pytest.mark.parametrize("content", [b"", b"this is no database" * 100])
def test_what_is_no_backup_is_not_put_back(data: Path, tmp_path: Path, content: bytes) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_bytes(content)
    with pytest.raises(StorageError, match=r"no database|not a database of Qdesk"):
        command(data, "restore", wrong)
    assert left_over(data) == ["qdesk.db"]


def test_a_copy_of_a_newer_version_is_not_put_back(data: Path, copy: Path) -> None:
    with closing(sqlite3.connect(copy)) as newer, newer:
        newer.execute("update alembic_version set version_num = '9999'")
    with pytest.raises(StorageError, match="newer version"):
        command(data, "restore", copy)
    assert names(data / "qdesk.db") == {"before", "after"}
    assert left_over(data) == ["qdesk.db"]


def test_a_copy_of_an_older_version_has_this_ones_schema_before_it_is_put_back(data: Path, copy: Path) -> None:
    copy.unlink()
    from storage.migrate import migrate

    older = Store(f"sqlite:///{copy}")
    migrate(older._database.url, "0001")
    assert command(data, "restore", copy) == 0
    with closing(sqlite3.connect(copy)) as one, closing(sqlite3.connect(data / "qdesk.db")) as other:
        versions = [each.execute("select version_num from alembic_version").fetchone()[0] for each in (one, other)]
    assert versions[0] == "0001" < versions[1]


def test_where_the_disk_is_full_nothing_is_changed(data: Path, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    with small_disk_at(tmp_path / "disk", 2) as disk:
        shutil.copy(data / "qdesk.db", disk / "qdesk.db")
        command(disk, "doctor")
        with Claim(disk)._lock:  # its file is made before the disk is full
            pass
        fill_up(disk / "ballast")
        with pytest.raises(StorageError, match="full"):
            command(disk, "restore", copy)
        assert names(disk / "qdesk.db") == {"before", "after"}
        assert left_over(disk) == ["ballast", "qdesk.db"]


@pytest.mark.parametrize("idle", [False, True])
def test_a_database_that_another_program_has_open_stays(
    data: Path, copy: Path, idle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its log holds cannot be written into it while somebody reads, and what he writes later would be lost."""
    monkeypatch.setattr(backup, "OTHERS_S", 0.1)
    with closing(sqlite3.connect(data / "qdesk.db", isolation_level=None)) as reader:
        reader.execute("pragma journal_mode=wal")
        reader.execute("begin")
        reader.execute("select * from users").fetchall()
        if idle:
            reader.execute("commit")
        add_accounts(data / "qdesk.db", {"later": "staff"})
        with pytest.raises(StorageError, match="Another program has the database open"):
            command(data, "restore", copy)
    assert names(data / "qdesk.db") == {"before", "after", "later"}
    assert left_over(data) == ["qdesk.db"]


def test_a_database_whose_log_cannot_be_written_into_it_stays(data: Path, copy: Path) -> None:
    """Which is no damage: on a full disk, or without the right, its newest rows are in the log alone."""
    (data / "qdesk.db-wal").mkdir()  # which nobody can read as a log
    with pytest.raises(StorageError, match="cannot be written into it"):
        command(data, "restore", copy)
    (data / "qdesk.db-wal").rmdir()
    assert names(data / "qdesk.db") == {"before", "after"}
    assert left_over(data) == ["qdesk.db"]


def test_a_damaged_database_makes_way_and_is_kept(data: Path, copy: Path) -> None:
    damaged = b"no database any more" * 100
    (data / "qdesk.db").write_bytes(damaged)
    assert command(data, "restore", copy) == 0
    assert names(data / "qdesk.db") == {"before"}
    [kept] = data.glob("qdesk.db.before-*")
    assert kept.read_bytes() == damaged


def test_a_copy_is_not_ready_before_it_has_this_versions_schema(data: Path, copy: Path) -> None:
    """Until then a server that ends for another shell must not find it."""
    from storage.migrate import migrate

    copy.unlink()
    migrate(Store(f"sqlite:///{copy}")._database.url, "0001")
    store, ready = Store(f"sqlite:///{data / 'qdesk.db'}"), list[str]()
    store.stage(
        copy,
        lambda *_: ready.append(f"copied {store.is_staged()}"),
        lambda *_: ready.append(f"migrated {store.is_staged()}"),
    )
    assert set(ready) == {"copied False", "migrated False"}
    assert store.is_staged()


def test_ctrl_c_at_the_last_step_is_too_late(data: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def disturbed(one: Path, other: Path) -> None:
        if other.name == "qdesk.db":
            signal.raise_signal(signal.SIGINT)
        replace(one, other)

    monkeypatch.setattr(os, "replace", disturbed)
    assert command(data, "restore", copy) == 0
    assert names(data / "qdesk.db") == {"before"}


@pytest.mark.parametrize("steps", range(6))
def test_a_restore_that_is_killed_leaves_one_or_the_other(
    data: Path, copy: Path, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before any of the steps that change a name, with rows that are in the log of the database alone."""
    with closing(sqlite3.connect(data / "qdesk.db")) as crashed:
        crashed.execute("pragma journal_mode=wal")
        crashed.execute("update users set name = 'in the log' where name = 'after'")
        crashed.commit()
        log = (data / "qdesk.db-wal").read_bytes()
        before = (data / "qdesk.db").read_bytes()
    (data / "qdesk.db").write_bytes(before)
    (data / "qdesk.db-wal").write_bytes(log)
    done: list[str] = []

    def killed_before(step: Callable[..., None]) -> Callable[..., None]:
        def counted(one: Path, other: Path) -> None:
            if len(done) == steps:
                raise Killed
            done.append(f"{step.__name__} {other.name}")
            step(one, other)

        return counted

    for step in (os.replace, os.link):
        monkeypatch.setattr(os, step.__name__, killed_before(step))
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # who is killed clears nothing away
    with suppress(Killed):
        command(data, "restore", copy)
        assert steps == 5, "there are more steps than tried here"
    monkeypatch.undo()
    expected = {"before"} if "replace qdesk.db" in done else {"before", "in the log"}
    assert names(data / "qdesk.db") == expected, done
    assert command(data, "restore", copy) == 0
    assert names(data / "qdesk.db") == {"before"}


for_root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can restore for somebody else"
)


@for_root
def test_what_root_restores_belongs_to_whoever_the_server_runs_as(data: Path, copy: Path) -> None:
    for file in (data, *data.iterdir()):
        os.chown(file, 65534, 65534)
    assert command(data, "restore", copy) == 0
    assert {file.stat().st_uid for file in data.iterdir()} == {65534}


@for_root
def test_root_neither_writes_nor_gives_away_what_a_link_leads_to(data: Path, copy: Path) -> None:
    """An account that somebody has taken over has its data folder to itself, and may plant one there."""
    theirs = data.with_name("theirs")
    theirs.write_text("root's")
    os.chown(data, 65534, 65534)
    (data / "another.db.partial").symlink_to(theirs)
    os.link(theirs, data / "qdesk.lock")
    assert command(data, "backup", data / "another.db") == 0
    assert command(data, "restore", copy) == 0
    assert (theirs.read_text(), theirs.stat().st_uid) == ("root's", 0)
