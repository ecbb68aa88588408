"""The database in trouble under the real server: a full disk, errors of the disk, another program's lock.

While it lasts, new questions are refused with a sentence, or answered all the same, as QDESK_ON_LOG_FAILURE says; what
is under way goes on. Afterwards everything works again by itself, and every answer that was given is in the log.
"""

import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path

import httpx
import pytest

from tests.disks import fill_up, small_disk_at
from tests.server import RunningServer, bearer, eventually, running_server

FIU = Path("/usr/lib/fiu")
CHAT = "/v1/chat/completions"

Trouble = Callable[[RunningServer], AbstractContextManager[None]]


@contextmanager
def full_disk(server: RunningServer) -> Iterator[None]:
    ballast = server.data_dir / "ballast"
    fill_up(ballast)
    yield
    ballast.unlink()


@contextmanager
def disk_errors(server: RunningServer) -> Iterator[None]:
    """Every write to a file, and every wait for it to be on the disk, fails with EIO."""
    names = ("posix/io/rw/pwrite", "posix/io/sync/fdatasync", "posix/io/sync/fsync")
    fail(server, *(f"enable name={name},failinfo=5" for name in names))
    yield
    fail(server, *(f"disable name={name}" for name in names))


def fail(server: RunningServer, *orders: str) -> None:
    """Tell libfiu in the server, by its pipes. They are held open until it has answered, however slow it is at opening
    and closing its ends; its own script loses an order that comes in between.
    """
    pipes = f"{server.log.parent / 'fiu'}-{server.process.pid}"
    with open(f"{pipes}.in", "wb", buffering=0) as told, open(f"{pipes}.out", "rb", buffering=0) as heard:
        for order in orders:
            eventually(partial(written, told, f"{order}\n".encode()))
            eventually(lambda: heard.read(16) == b"0\n")


def written(pipe: FileIO, order: bytes) -> bool:
    with suppress(BrokenPipeError):
        return pipe.write(order) == len(order)
    return False


@contextmanager
def foreign_lock(server: RunningServer) -> Iterator[None]:
    """Another program in the middle of a change."""
    with closing(sqlite3.connect(server.data_dir / "qdesk.db", isolation_level=None, timeout=30)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


TROUBLES = [full_disk, disk_errors, foreign_lock]


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with small_disk_at(tmp_path_factory.mktemp("disk"), megabytes=12) as disk:
        yield disk


@contextmanager
def server_on(disk: Path, tmp_path: Path, policy: str) -> Iterator[RunningServer]:
    with pytest.MonkeyPatch.context() as environment:
        if shutil.which("fiu-ctrl"):
            libraries = [str(FIU / name) for name in ("fiu_run_preload.so", "fiu_posix_preload.so")]
            environment.setenv("LD_PRELOAD", " ".join(libraries))
            environment.setenv("FIU_CTRL_FIFO", str(tmp_path / "fiu"))
        with running_server(
            disk / policy, log=tmp_path / "log", forged=False, on_log_failure=policy, max_new_tokens=4000
        ) as server:
            yield server
            server.process.kill()  # libfiu does not survive a proper end
            server.process.wait()
    with closing(sqlite3.connect(disk / policy / "qdesk.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


@pytest.fixture(scope="module")
def refusing(small_disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with server_on(small_disk, tmp_path_factory.mktemp("refuse"), "refuse") as server:
        yield server


@pytest.fixture(scope="module")
def warning(small_disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    with server_on(small_disk, tmp_path_factory.mktemp("warn"), "warn") as server:
        yield server


@pytest.fixture(params=TROUBLES, ids=lambda trouble: trouble.__name__)
def trouble(request: pytest.FixtureRequest) -> Trouble:
    if request.param is disk_errors and not shutil.which("fiu-ctrl"):
        pytest.skip("errors of the disk are made by libfiu; on Debian: apt-get install fiu-utils")
    chosen: Trouble = request.param
    return chosen


def ask(server: RunningServer, prompt: str) -> httpx.Response:
    question = {"messages": [{"role": "user", "content": prompt}]}
    return httpx.post(server.url + CHAT, json=question, headers=bearer(), timeout=60)


def ready(server: RunningServer) -> bool:
    return httpx.get(server.url + "/readyz").status_code == 200


def test_refuse_nothing_new_is_answered_until_it_is_over(refusing: RunningServer, trouble: Trouble) -> None:
    server = refusing
    with ThreadPoolExecutor(1) as thread:
        before = thread.submit(ask, server, " ".join(["word"] * 300))  # six seconds
        eventually(lambda: server.rows("select 1 from exchanges where status = 'running'") != [])
        with trouble(server):
            eventually(lambda: not ready(server))
            state = httpx.get(server.url + "/readyz").json()
            assert state["status"] == "failed"
            assert state["reason"].startswith("The log cannot be written, so nothing is answered: The d")
            refused = ask(server, "while it lasts")
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "log_failed")
            assert httpx.get(server.url + "/livez").status_code == 200
            answered = before.result()
            assert answered.status_code == 200  # what was under way goes on
    eventually(lambda: ready(server))
    eventually(lambda: server.status_of(answered.json()["id"].removeprefix("chatcmpl-")) == "done")
    assert ask(server, "afterwards").status_code == 200
    assert server.rows("select 1 from exchanges where prompt = 'while it lasts'") == []


def test_warn_answers_go_on_and_are_in_the_log_afterwards(warning: RunningServer, trouble: Trouble) -> None:
    server, asked = warning, f"during {trouble.__name__}"
    with trouble(server):
        answers = [ask(server, f"{asked} {number}") for number in range(3)]
        assert [answer.status_code for answer in answers] == [200, 200, 200]
        assert "writing to the database is held up" in server.output()
        assert ready(server)
    eventually(lambda: server.rows(f"select status from exchanges where prompt like '{asked}%'") == [("done",)] * 3)


def test_pages_open_while_the_database_is_locked_and_people_sign_in_afterwards(refusing: RunningServer) -> None:
    with foreign_lock(refusing), httpx.Client(base_url=refusing.url, timeout=60) as browser:
        assert browser.get("/login").status_code == 200
    with refusing.sign_in() as browser:
        assert browser.get("/").status_code == 200


def test_a_disk_that_fails_now_and_then_loses_nothing(refusing: RunningServer) -> None:
    """One write in fifty fails, under eight programs; whoever got an answer finds it in the log."""
    if not shutil.which("fiu-ctrl"):
        pytest.skip("errors of the disk are made by libfiu; on Debian: apt-get install fiu-utils")
    server, given, lock = refusing, set[str](), threading.Lock()

    def ask_on(program: int) -> None:
        for number in range(8):
            answer = ask(server, f"flaky {program} {number}")
            assert answer.status_code in (200, 503), answer.text
            if answer.status_code == 200:
                with lock:
                    given.add(answer.json()["id"].removeprefix("chatcmpl-"))

    fail(server, "enable_random name=posix/io/rw/pwrite,probability=0.02,failinfo=5")
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask_on, range(8)))
    fail(server, "disable name=posix/io/rw/pwrite")
    eventually(lambda: ready(server))
    unfinished = "select count(*) from exchanges where status in ('queued', 'running')"
    eventually(lambda: server.rows(unfinished) == [(0,)])
    assert given
    done = server.rows("select id from exchanges where prompt like 'flaky%' and status = 'done'")
    assert given <= {id for (id,) in done}
