"""`restore` beside a server where something comes between: a signal, another shell, a disk that takes no word."""

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest

from engine.settings import Settings
from storage import Store
from tests.server import eventually, running_server
from tests.ui.console.test_commands import command
from tests.ui.console.test_restore_running import asked_since, began_at, copied, nothing_is_left, shell
from tests.ui.test_shutdown import stream
from ui.console import restoring
from ui.console.opened import Refused
from ui.handover import Handover
from ui.starting import Claim

# Servers that something happens to at one place.
TOLD_TO_END_DURING_THE_LOOK = """
import os, signal, threading, main
from ui.handover import Handover
from ui.serving import Life
tell, told_to_end, came = Handover.tell, Life._told_to_end, threading.Event()
def signalled(self):
    told_to_end(self)
    came.set()
def disturbed(self, step, about=""):
    tell(self, step, about)
    if step == "ending":
        os.kill(os.getpid(), signal.SIGTERM)
        came.wait(30)
Life._told_to_end, Handover.tell = signalled, disturbed
main.main()
"""
TOLD_TO_END_AT_THE_LAST_STEP = """
import os, signal, main
replace = os.replace
def disturbed(one, other):
    if str(other).endswith("qdesk.db"):
        signal.raise_signal(signal.SIGTERM)
    replace(one, other)
os.replace = disturbed
main.main()
"""
NO_WORD_AND_NO_LIST = """
import errno, os, main
from ui.handover import Handover
tell, listdir = Handover.tell, os.listdir
def told(self, step, about=""):
    if step in ("placed", "refused"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    tell(self, step, about)
def listed(path="."):
    if path == "/dev/fd":
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    return listdir(path)
Handover.tell, os.listdir = told, listed
main.main()
"""


def test_a_second_shell_comes_while_answers_finish_and_its_copy_is_taken(tmp_path: Path) -> None:
    with running_server(drain_s=600) as server, ExitStack() as stack:
        first, second = copied(server, tmp_path), tmp_path / "second.db"
        assert command(server.data_dir, "backup", second) == 0
        id, answer = stream(server, "stand still", stack)
        with shell(server.data_dir, first) as withdrawn:
            eventually(lambda: "lets answers finish" in withdrawn.told())
            withdrawn.process.send_signal(signal.SIGINT)
            assert withdrawn.ends() == 1
        with shell(server.data_dir, second) as restore:
            eventually(lambda: "lets answers finish" in restore.told())
            assert server.status_of(id) == "running"
            answer.close()
            assert restore.ends() == 0, restore.told()
        assert asked_since(server), "the first copy is served"
        assert server.status_of(id) == "", "no copy is served"


def test_a_copy_that_nobody_has_asked_for_yet_is_not_taken(tmp_path: Path) -> None:
    """Of a shell that comes when another has given up: that somebody waits says nothing of this copy."""
    with running_server(drain_s=600) as server, ExitStack() as stack:
        copy, began = copied(server, tmp_path), began_at(server)
        _, answer = stream(server, "stand still", stack)
        with shell(server.data_dir, copy) as withdrawn:
            eventually(lambda: "lets answers finish" in withdrawn.told())
            withdrawn.process.send_signal(signal.SIGINT)
            assert withdrawn.ends() == 1
        with Handover(server.data_dir).waiting():
            Store(f"sqlite:///{server.data_dir / 'qdesk.db'}").stage(copy, lambda *_: None, lambda *_: None)
            answer.close()
            eventually(lambda: began_at(server) != began)
        assert asked_since(server)


def test_what_is_said_while_the_copy_is_made_is_meant_for_another_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restoring, "TAKEN_UP_S", 0.3)
    command(tmp_path, "migrate")
    command(tmp_path, "backup", tmp_path / "copy.db")
    settings = Settings(backend="scripted", data_dir=tmp_path)
    claim = Claim(tmp_path)
    claim.acquire()
    with pytest.raises(Refused, match="takes no copy"):
        restoring.restore(
            tmp_path / "copy.db",
            settings,
            Store(settings.sqlalchemy_url),
            lambda _: lambda *_: Handover(tmp_path).tell("serving"),
        )
    claim.release()


def test_a_signal_during_the_look_that_finds_a_copy_ends_the_server_for_good(tmp_path: Path) -> None:
    with running_server(program=("-c", TOLD_TO_END_DURING_THE_LOOK), drain_s=600) as server, ExitStack() as stack:
        copy = copied(server, tmp_path)
        id, answer = stream(server, "stand still", stack)
        with shell(server.data_dir, copy) as restore:
            assert restore.ends() == 1
            assert "was told to end before it took the copy. The database is as it was." in restore.told()
        assert server.status_of(id) == "running", "the first signal cuts off no answer"
        answer.close()
        assert server.process.wait(60) == 0
        assert asked_since(server)
        assert nothing_is_left(server.data_dir)


def test_a_signal_at_the_last_step_ends_the_server_when_that_is_done_and_told(tmp_path: Path) -> None:
    with running_server(program=("-c", TOLD_TO_END_AT_THE_LAST_STEP)) as server:
        with shell(server.data_dir, copied(server, tmp_path)) as restore:
            assert restore.ends() == 1
            assert "The copy is in its place, but the server is not back" in restore.told()
        assert server.process.wait(60) == 0
        assert not asked_since(server)
        assert nothing_is_left(server.data_dir)


def test_a_server_that_can_tell_nothing_and_list_nothing_begins_anew(tmp_path: Path) -> None:
    with running_server(program=("-c", NO_WORD_AND_NO_LIST)) as server:
        with shell(server.data_dir, copied(server, tmp_path)) as restore:
            assert restore.ends() == 0, restore.told()
        assert server.process.poll() is None
        assert not asked_since(server)


def test_a_server_that_cannot_tell_that_it_ends_for_good_takes_no_copy_either(tmp_path: Path) -> None:
    with running_server(program=("-c", NO_WORD_AND_NO_LIST), drain_s=600) as server, ExitStack() as stack:
        copy = copied(server, tmp_path)
        _, answer = stream(server, "stand still", stack)
        with shell(server.data_dir, copy) as restore:
            eventually(lambda: "lets answers finish" in restore.told())
            restore.process.send_signal(signal.SIGSTOP)  # it looks again when the server is gone
            server.process.send_signal(signal.SIGTERM)
            eventually(lambda: "cannot be told why no copy is taken" in server.output())
            answer.close()
            assert server.process.wait(60) == 0
            restore.process.send_signal(signal.SIGCONT)
            assert restore.ends() == 1
            assert "The database is as it was." in restore.told()
        assert asked_since(server)
