"""Starts that cannot come to anything: one sentence each, no stack trace, an exit code that is not 0."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from engine.settings import Settings
from tests.databases import new_database
from tests.server import FORGES, PASSWORD, ROOT, bearer, eventually, free_port, run_to_its_end, running_server
from ui.seal import open_seal


def start(data_dir: Path, forged: bool = FORGES, **settings: object) -> tuple[int, str]:
    """Start a server that should give up: its exit code and all that it says."""
    chosen = {"backend": "scripted", "port": free_port(), "data_dir": data_dir, **settings}
    environment = {"PATH": os.environ["PATH"], "HOME": str(data_dir.parent)}
    environment |= {f"QDESK_{name.upper()}": str(value) for name, value in chosen.items()}
    return run_to_its_end(("main.py",), environment, forged)


def assert_one_sentence(ended: tuple[int, str], *parts: str) -> None:
    code, said = ended
    assert code == 1, said
    assert len(said.strip().splitlines()) == 1
    assert [part for part in parts if part not in said] == []


def test_a_second_server_on_one_data_folder_gives_up_and_harms_nothing() -> None:
    with running_server() as server, ExitStack() as stack:
        question = {"messages": [{"role": "user", "content": "long"}], "stream": True}
        url = server.url + "/v1/chat/completions"
        answer = stack.enter_context(httpx.stream("POST", url, json=question, headers=bearer(), timeout=30))
        id = answer.headers["x-request-id"]
        eventually(lambda: server.status_of(id) == "running")
        assert_one_sentence(start(server.data_dir), "Another Qdesk is running", str(server.data_dir))
        assert server.status_of(id) == "running"


def test_a_killed_server_leaves_no_lock_behind(tmp_path: Path) -> None:
    with running_server(tmp_path) as server:
        server.process.kill()
        server.process.wait()
    with running_server(tmp_path) as server:
        assert httpx.get(server.url + "/livez").status_code == 200


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_one_sentence(
            start(tmp_path / "data", forged=False, port=port), f"127.0.0.1 port {port}", "already in use"
        )
    assert not (tmp_path / "data" / "qdesk.db").exists()  # seen before anything is touched


def test_a_data_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    assert_one_sentence(start(tmp_path / "file"), "The data folder", "cannot be used")
    assert_one_sentence(start(tmp_path / "file" / "below"), "Not a directory")


def test_a_database_of_garbage(tmp_path: Path) -> None:
    (tmp_path / "qdesk.db").write_bytes(os.urandom(10_000))
    assert_one_sentence(start(tmp_path), "qdesk.db cannot be opened", "not a database")


def test_a_database_of_another_program(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "qdesk.db")) as database, database:
        database.execute("create table theirs (id)")
    assert_one_sentence(start(tmp_path), "belongs to another program")


def test_a_secret_that_was_cut_off(tmp_path: Path) -> None:
    (tmp_path / "session.secret").write_bytes(b"")
    assert_one_sentence(start(tmp_path), "session.secret is cut off")


def test_a_secret_that_cannot_be_written_leaves_none_that_is_cut_off(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    settings = Settings.model_validate({"data_dir": tmp_path})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))  # as if the disk were full after ten bytes
    try:
        with pytest.raises(SystemExit, match=r"session\.secret cannot be used"):
            open_seal(settings)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert open_seal(settings)("session", "x") == open_seal(settings)("session", "x")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_log_that_cannot_be_written_keeps_nobody_from_being_answered(tmp_path: Path) -> None:
    """Not even from the first start, which prints the link to make an account."""
    (tmp_path / "log").symlink_to("/dev/full")
    with running_server(tmp_path / "data", log=tmp_path / "log", admin_password="") as server:
        answer = httpx.post(server.url + "/", json={"prompt": "hello"}, headers=bearer())
        assert answer.json()["response"] == "You said: hello"
        server.process.kill()
        server.process.wait()


def test_the_first_account_is_there_before_the_first_answer() -> None:
    with running_server(admin_password=PASSWORD, ready=False) as server:  # returns with the first answer
        assert server.rows("select name from users") == [("admin",)]


def test_the_second_start_needs_no_migration(tmp_path: Path) -> None:
    """Alembic takes a tenth of a start's time; HTTP libraries that nothing here calls took another."""
    new_database(tmp_path / "second.db")
    opened = (
        "import sys, main\n"
        "for name in ('second', 'first'):\n"
        "    main.Store(f'sqlite:///{sys.argv[1]}/{name}.db').open()\n"
        "    print(name, *sorted({'alembic', 'aiohttp', 'requests'} & sys.modules.keys()))"
    )
    said = subprocess.run([sys.executable, "-c", opened, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert said.stdout.splitlines() == ["second", "first alembic"], said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_imports_ends_the_start_without_a_word(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-v", "main.py"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as starting:
        assert starting.stdout is not None
        for line in starting.stdout:
            if line.startswith("import 'fastapi"):  # far from the end of the imports
                break
        starting.send_signal(number)
        said = starting.stdout.read()
        assert starting.wait(60) == 0, said
    assert "import 'fastapi" in line
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_the_model_is_loading_stops_at_once(number: signal.Signals) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never says which models it has
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with running_server(ready=False, backend="remote", openai_base_url=url, drain_s=600) as server:
            assert httpx.get(server.url + "/readyz").json()["status"] == "loading"
            server.process.send_signal(number)
            assert server.process.wait(30) == 0
            assert "Traceback" not in server.output()
