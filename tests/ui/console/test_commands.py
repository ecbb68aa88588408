"""What an operator does in a shell, on real databases and beside a real server."""

import io
import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import httpx
import pytest

from engine.settings import Settings
from storage import Store
from storage.errors import StorageError
from tests.databases import PASSWORD, SECRET
from tests.server import ROOT, RunningServer, bearer, eventually, form_token, run_to_its_end, running_server, sign_in
from ui.console.commands import run


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(accounts={"ada": "staff"}) as running:
        yield running


def command(data_dir: Path, *arguments: str | Path, **settings: object) -> int:
    chosen = Settings.model_validate({"backend": "scripted", "data_dir": data_dir, **settings})
    return run([str(argument) for argument in arguments], chosen, Store(chosen.sqlalchemy_url))


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def ask(server: RunningServer, prompt: str) -> None:
    question = {"messages": [{"role": "user", "content": prompt}]}
    answer = httpx.post(server.url + "/v1/chat/completions", json=question, headers=bearer(), timeout=60)
    assert answer.status_code == 200


def test_a_backup_beside_the_server_holds_all_that_was_answered(
    server: RunningServer, tmp_path: Path, logged: list[str]
) -> None:
    for number in range(5):
        ask(server, f"question {number}")
    copy = tmp_path / "copy.db"
    assert command(server.data_dir, "backup", copy) == 0
    assert logged[-1] == "copying: 100 %"
    assert copy.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(copy)) as database:
        found = database.execute("select count(*) from exchanges where prompt like 'question %' and status = 'done'")
        assert found.fetchone() == (5,)
    with pytest.raises(StorageError, match="there already"):
        command(server.data_dir, "backup", copy)


def test_copies_made_while_everybody_writes_pass_all_checks_and_serve(server: RunningServer, tmp_path: Path) -> None:
    """Three in a row, beside four programs; each is restored, opened as a server opens it, and holds whole answers."""
    over = threading.Event()

    def ask_on(program: int) -> None:
        while not over.is_set():
            ask(server, f"program {program} asks for itself")

    with ThreadPoolExecutor(4) as programs:
        asking = [programs.submit(ask_on, number) for number in range(4)]
        copies = [tmp_path / f"copy {number}.db" for number in range(3)]
        for number, copy in enumerate(copies, start=1):
            more = "select 1 from exchanges where prompt like 'program %' and status = 'done' limit 1 offset ?"
            eventually(partial(server.rows, more, 3 * number))
            assert command(server.data_dir, "backup", copy) == 0
        over.set()
        assert [each.exception() for each in asking] == [None] * 4
    for copy in copies:
        restored = tmp_path / copy.stem
        assert command(restored, "restore", copy) == 0
        store = Store(f"sqlite:///{restored / 'qdesk.db'}")
        store.open()
        store.close()
        with closing(sqlite3.connect(restored / "qdesk.db")) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            assert database.execute("PRAGMA foreign_key_check").fetchall() == []
            rows = database.execute(
                "select prompt, answer, status from exchanges where prompt like 'program %'"
            ).fetchall()
        assert {status for _, _, status in rows} <= {"done", "interrupted"}  # as after a crash at that moment
        assert all(answer == f"You said: {prompt}" for prompt, answer, status in rows if status == "done")
        assert rows


def test_an_account_made_beside_the_server_signs_in(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    typed(monkeypatch, "a password of her own\n")
    assert command(server.data_dir, "user", "add", "Grace", "--role", "reviewer") == 0
    with server.sign_in("grace", "a password of her own") as browser:
        assert browser.get("/review").status_code == 200
    typed(monkeypatch, "another\n")
    assert command(server.data_dir, "user", "add", "grace") == 1  # the name is taken, in any case
    typed(monkeypatch, "short\n")
    assert command(server.data_dir, "user", "add", "somebody") == 1


def test_another_password_ends_the_sessions(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.sign_in("ada"):
        typed(monkeypatch, "the new one of ada\n")
        assert command(server.data_dir, "user", "reset-password", "ada") == 0
        assert server.rows("select count(*) from sessions join users on users.id = user_id where name = 'ada'") == [
            (0,)
        ]
    with httpx.Client(base_url=server.url, timeout=60) as browser:
        assert sign_in(browser, "ada", PASSWORD).status_code != 303
        assert sign_in(browser, "ada", "the new one of ada").status_code == 303
    typed(monkeypatch, "whatever it is\n")
    assert command(server.data_dir, "user", "reset-password", "nobody") == 1
    assert ("user.password", "ada") in server.rows("select action, target from audit")


def test_beside_the_server_nothing_at_work_is_taken_for_dead(
    server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = {"messages": [{"role": "user", "content": "long"}], "stream": True}
    url = server.url + "/v1/chat/completions"
    with httpx.stream("POST", url, json=question, headers=bearer(), timeout=60) as answer:
        id = answer.headers["x-request-id"]
        lines = answer.iter_lines()  # kept: the answer is closed with its iterator
        next(line for line in lines if "word0" in line)
        typed(monkeypatch, "a good password\n")
        assert command(server.data_dir, "user", "add", "late") == 0
        assert server.status_of(id) == "running"


def test_export_writes_every_exchange(server: RunningServer, tmp_path: Path, logged: list[str]) -> None:
    ask(server, "导出我")
    file = tmp_path / "all.jsonl"
    assert command(server.data_dir, "export", file) == 0
    assert logged[-1] == "exporting: 100 %"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(lines) == server.rows("select count(*) from exchanges")[0][0]
    assert "导出我" in {line["prompt"] for line in lines}
    assert command(server.data_dir, "export", file) == 1


def test_the_doctor_tells_each_thing_in_a_line(
    tmp_path: Path, server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(tmp_path / "new", "doctor", models_dir=tmp_path) == 0
    told = capsys.readouterr().out.splitlines()
    topics = [line.split()[1] for line in told]
    assert topics == ["machine", "GPU", "kernel", "model", "data", "models", "port", "database"]
    assert all(line.startswith(("ok", "note")) and line.endswith(".") for line in told)
    assert not (tmp_path / "new").exists()  # it changes nothing

    port = int(server.url.rpartition(":")[2])
    assert command(server.data_dir, "doctor", port=port) == 0
    told = capsys.readouterr().out.splitlines()
    assert "If that is Qdesk itself" in told[6]
    assert "is sound" in told[7]


def test_the_doctor_finds_a_damaged_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "qdesk.db").write_bytes(b"no database at all" * 100)
    assert command(tmp_path, "doctor") == 1
    assert "put a backup back" in capsys.readouterr().out


def test_main_takes_commands_and_explains_them(tmp_path: Path) -> None:
    settings = {"PATH": "/usr/bin:/bin", "QDESK_BACKEND": "scripted", "QDESK_DATA_DIR": str(tmp_path)}
    migrated = subprocess.run(
        [sys.executable, "main.py", "migrate"], cwd=ROOT, env=settings, capture_output=True, text=True, timeout=120
    )
    assert (migrated.returncode, migrated.stdout) == (0, "The database has this version's schema.\n")
    assert "migrating: 100 %" in migrated.stderr
    code, told = run_to_its_end(("main.py", "dance"), settings)
    assert code == 2
    assert "doctor" in told


def test_a_link_lets_somebody_in_once_where_nothing_else_does(
    server: RunningServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also beside a server that takes no passwords: the link is the operator's."""
    same_secret = {"session_secret": SECRET, "port": server.url.rpartition(":")[2]}
    assert command(server.data_dir, "user", "link", "nobody", **same_secret) == 1
    assert command(server.data_dir, "user", "link", "ada", **same_secret) == 0
    link = capsys.readouterr().out.strip().removeprefix(server.url)
    with httpx.Client(base_url=server.url) as ada:
        page = ada.get(link)
        assert "signs you in as ada, once" in page.text
        form = {"form_token": form_token(page.text), "token": link.partition("token=")[2]}
        assert httpx.post(server.url + "/login/link", data=form).status_code == 403  # another browser's form
        assert ada.post("/login/link", data=form).headers["location"] == "/"
        assert ada.get("/account").status_code == 200
        assert ada.post("/login/link", data=form).status_code == 403
        assert ada.get(link).status_code == 403
    assert link.partition("token=")[2] not in server.output()


def test_a_second_step_is_reset(server: RunningServer) -> None:
    server.change("update users set totp_nonce = 'some nonce' where name = 'admin'")
    with httpx.Client(base_url=server.url) as admin:
        assert sign_in(admin, "admin", PASSWORD).headers["location"] == "/login/code"
        assert command(server.data_dir, "user", "reset-second-step", "admin") == 0
        assert sign_in(admin, "admin", PASSWORD).headers["location"] == "/"
    assert ("", "user.second_step_reset", "admin") in server.rows("select actor, action, target from audit")
