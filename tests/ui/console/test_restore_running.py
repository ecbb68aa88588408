"""`restore` beside a running server: it ends in order, takes the copy, and begins anew as the same process."""

import os
import signal
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import httpx
import psutil
import pytest
from filelock import Timeout

from storage.errors import StorageError
from tests.forge import Process
from tests.server import RunningServer, bearer, eventually, running_server, start
from tests.ui.console.test_commands import ask, command
from tests.ui.test_shutdown import stream
from ui.console import restoring
from ui.handover import Handover
from ui.starting import Claim

PROMPTS = "select prompt, status from exchanges"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(drain_s=600) as running:
        yield running


@pytest.fixture
def copy(server: RunningServer, tmp_path: Path) -> Path:
    return copied(server, tmp_path)


def copied(server: RunningServer, folder: Path) -> Path:
    """A copy, and a question that was asked since, which is in the database alone."""
    copy = folder / "copy.db"
    assert command(server.data_dir, "backup", copy) == 0
    ask(server, "since the copy")
    return copy


class Shell:
    """`restore` in a process of its own."""

    def __init__(self, process: Process, output: Path) -> None:
        self.process, self._output = process, output

    def told(self) -> str:
        return self._output.read_text(encoding="utf-8")

    def ends(self) -> int:
        return self.process.wait(60)


@contextmanager
def shell(data: Path, copy: Path) -> Iterator[Shell]:
    settings = {"QDESK_BACKEND": "scripted", "QDESK_DATA_DIR": str(data)}
    output = copy.with_suffix(".output")
    with output.open("wb") as file:
        process = start(("main.py", "restore", str(copy)), {**os.environ, **settings}, file)
    try:
        yield Shell(process, output)
    finally:
        process.kill()
        process.wait(60)


def asked_since(server: RunningServer) -> bool:
    return ("since the copy", "done") in server.rows(PROMPTS)


def state(server: RunningServer) -> str:
    return str(httpx.get(server.url + "/readyz").json()["status"])


def began_at(server: RunningServer) -> str:
    """Something that is another when the server has begun anew in the same process."""
    return str(server.output().count("ready: scripted"))


def nothing_is_left(data: Path) -> bool:
    return not [file for file in data.iterdir() if "restor" in file.name and file.suffix != ".lock"]


def test_the_copy_is_served_by_the_same_process_and_the_old_one_has_the_last_answer(
    server: RunningServer, copy: Path
) -> None:
    pid, in_between, over = server.process.pid, [], threading.Event()

    def try_the_folder() -> None:
        """As another server would that is started meanwhile."""
        claim = Claim(server.data_dir)
        while not over.wait(0.001):
            try:
                claim.acquire()
            except Timeout:
                continue
            in_between.append("the folder was free")
            claim.release()

    other = threading.Thread(target=try_the_folder)
    with ExitStack() as stack:
        id, answer = stream(server, "a few words " * 40, stack)
        eventually(lambda: server.status_of(id) == "running")
        other.start()
        restore = stack.enter_context(shell(server.data_dir, copy))
        eventually(lambda: state(server) == "draining")
        refused = httpx.post(
            server.url + "/v1/chat/completions",
            json={"messages": [{"role": "user", "content": "hi"}]},
            headers=bearer(),
        )
        assert refused.json()["error"]["code"] == "draining"
        assert answer.read().endswith(b"data: [DONE]\n\n")
        assert restore.ends() == 0, restore.told()
    over.set()
    other.join()
    assert in_between == []
    assert "is the one of" in restore.told()
    assert (server.process.poll(), psutil.Process(pid).children()) == (None, [])

    assert not asked_since(server)
    assert server.status_of(id) == ""
    kept = Path(restore.told().rpartition(" kept as ")[2].strip().removesuffix("."))
    with closing(sqlite3.connect(kept)) as database:
        assert database.execute("select status from exchanges where id = ?", [id]).fetchone() == ("done",)
        assert database.execute("pragma integrity_check").fetchall() == [("ok",)]
    assert server.rows("pragma integrity_check") == [("ok",)]
    ask(server, "after the restore")  # it answers as soon as the shell says that it is done
    assert nothing_is_left(server.data_dir)


def test_what_is_refused_disturbs_nobody(server: RunningServer, copy: Path, tmp_path: Path) -> None:
    before = server.rows(PROMPTS), began_at(server)
    newer, damaged = tmp_path / "newer.db", tmp_path / "damaged.db"
    newer.write_bytes(copy.read_bytes())
    with closing(sqlite3.connect(newer)) as database, database:
        database.execute("update alembic_version set version_num = '9999'")
    content = copy.read_bytes()
    damaged.write_bytes(content[: len(content) // 2])
    for wrong in (newer, damaged, tmp_path / "missing.db"):
        with pytest.raises(StorageError):
            command(server.data_dir, "restore", wrong)
    assert (server.rows(PROMPTS), began_at(server)) == before
    assert state(server) == "ready"
    assert nothing_is_left(server.data_dir)


def test_ctrl_c_withdraws_it_and_a_second_shell_is_refused_meanwhile(
    server: RunningServer, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = began_at(server)
    with shell(server.data_dir, copy) as restore, ExitStack() as stack:
        id, answer = stream(server, "stand still", stack)
        eventually(lambda: "lets answers finish, for 600 s" in restore.told())
        assert command(server.data_dir, "restore", copy) == 1
        assert "Another restore is under way" in capsys.readouterr().err
        restore.process.send_signal(signal.SIGINT)
        assert restore.ends() == 1
        assert "The restore is withdrawn. The database is as it was." in restore.told()
        answer.close()
        eventually(lambda: began_at(server) != began)  # it had refused work already, and takes it again
    assert asked_since(server)
    assert server.status_of(id) == "disconnected"
    assert nothing_is_left(server.data_dir)


def test_a_shell_that_is_killed_has_withdrawn_it(server: RunningServer, copy: Path) -> None:
    began = began_at(server)
    with shell(server.data_dir, copy) as restore, ExitStack() as stack:
        _, answer = stream(server, "stand still", stack)
        eventually(lambda: "lets answers finish" in restore.told())
        restore.process.kill()
        restore.ends()
        answer.close()
        eventually(lambda: began_at(server) != began)
    assert asked_since(server)
    eventually(lambda: nothing_is_left(server.data_dir))


def leave_behind(data: Path, *, asked: bool) -> None:
    """What a shell leaves that is killed when it has asked, or while it copied."""
    command(data, "backup", data / "qdesk.db.restoring")
    (data / "qdesk.db.restoring.new.partial").touch()
    with Handover(data).waiting():
        pass  # which makes the file of the lock
    if asked:
        Handover(data).tell("asked")


def test_what_a_dead_shell_has_asked_the_running_server_for_is_never_done(server: RunningServer, copy: Path) -> None:
    began = began_at(server)
    for _ in range(2):  # the first may be found by what looks once after a start
        leave_behind(server.data_dir, asked=True)
        eventually(lambda: nothing_is_left(server.data_dir))
    assert (state(server), began_at(server)) == ("ready", began)


@pytest.mark.parametrize("asked", [True, False])
def test_what_a_dead_shell_has_left_is_never_done_by_a_later_server(tmp_path: Path, asked: bool) -> None:
    command(tmp_path, "migrate")
    leave_behind(tmp_path, asked=asked)
    with running_server(tmp_path) as later:
        eventually(lambda: nothing_is_left(tmp_path))
        assert (state(later), began_at(later)) == ("ready", "1")
        assert not list(tmp_path.glob("*.before-*"))


def test_a_server_that_is_killed_meanwhile_leaves_it_to_the_shell(tmp_path: Path) -> None:
    with running_server(drain_s=600) as server:
        copy = copied(server, tmp_path)
        with shell(server.data_dir, copy) as restore, ExitStack() as stack:
            stream(server, "stand still", stack)
            eventually(lambda: "lets answers finish" in restore.told())
            server.process.kill()
            assert restore.ends() == 0, restore.told()
        assert not asked_since(server)
        assert server.rows("pragma integrity_check") == [("ok",)]
        [kept] = server.data_dir.glob("*.before-*")
        with closing(sqlite3.connect(kept)) as database:
            assert database.execute("select count(*) from exchanges").fetchone() == (2,)


def test_a_server_that_is_told_to_end_meanwhile_ends_and_takes_nothing(tmp_path: Path) -> None:
    with running_server(drain_s=600) as server:
        copy = copied(server, tmp_path)
        with shell(server.data_dir, copy) as restore, ExitStack() as stack:
            id, answer = stream(server, "stand still", stack)
            eventually(lambda: "lets answers finish" in restore.told())
            server.process.send_signal(signal.SIGTERM)
            assert restore.ends() == 1
            assert "was told to end before it took the copy. The database is as it was." in restore.told()
            assert server.status_of(id) == "running", "the first signal cuts off no answer"
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(60) == 0
            answer.read()
        assert asked_since(server)
        assert nothing_is_left(server.data_dir)


def test_whoever_has_the_folder_and_takes_no_copy_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A version that knows nothing of it, or another command."""
    monkeypatch.setattr(restoring, "TAKEN_UP_S", 0.3)
    command(tmp_path, "migrate")
    command(tmp_path, "backup", tmp_path / "copy.db")
    claim = Claim(tmp_path)
    claim.acquire()
    assert command(tmp_path, "restore", tmp_path / "copy.db") == 1
    assert "takes no copy" in capsys.readouterr().err
    assert nothing_is_left(tmp_path)
    claim.release()
