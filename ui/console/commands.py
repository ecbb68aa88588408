"""The commands of main.py beside serving: reads the arguments, does the work, says in a line what came of it.

Knows the store by what it is given. The exit status is 0, 1 where the work could not be done, 2 for wrong arguments.
"""

import argparse
import asyncio
import getpass
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from filelock import FileLock, Timeout

from engine.progress import console
from engine.settings import Settings
from engine.types import ExchangeFilter, Progress
from ui.components.review.export import json_line
from ui.console.doctor import examine
from ui.passwords import MAX_LENGTH, MIN_LENGTH, Passwords
from ui.starting import LOCK_FILE, data_folder

if TYPE_CHECKING:
    from storage import Store

ROLES = ("staff", "reviewer", "admin")
PAGE = 200  # exchanges that are read at once


class Refused(Exception):
    """It cannot be done; the sentence says why."""


def run(arguments: Sequence[str], settings: Settings, store: "Store") -> int:
    """Do what the arguments say and return the exit status."""
    asked = _parser().parse_args(arguments)
    try:
        status: int = asked.work(asked, settings, store) or 0
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python main.py", description="Without a command: serve.")
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(name: str, work: Callable[[Any, Settings, "Store"], int | None], about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about)
        added.set_defaults(work=work)
        return added

    command("doctor", _doctor, "Look at machine, model, folders, port and database; say what to do.")
    command("migrate", _migrate, "Bring the database to this version's schema.")
    copy = command("backup", _backup, "Copy the SQLite database into a new file, also while the server runs.")
    copy.add_argument("file", type=Path)
    back = command("restore", _restore, "Put a copy in the place of the database; the server must not run.")
    back.add_argument("file", type=Path)
    out = command("export", _export, "Write every logged exchange as a JSON line.")
    out.add_argument("file", type=Path, nargs="?", help="a new file; without one, standard output")
    user = command("user", _user_add, "Make an account, or give it another password.")
    actions = user.add_subparsers(required=True, metavar="action")
    add = actions.add_parser("add", help="make an account; the password is asked for, or read from standard input")
    add.add_argument("name")
    add.add_argument("--role", choices=ROLES, default="staff")
    add.set_defaults(work=_user_add)
    reset = actions.add_parser("reset-password", help="give another password, and end all sessions of the account")
    reset.add_argument("name")
    reset.set_defaults(work=_user_reset)
    lost = actions.add_parser("reset-second-step", help="ask for no code any more, and end all sessions of the account")
    lost.add_argument("name")
    lost.set_defaults(work=_user_reset_second_step)
    return parser


def _doctor(asked: Any, settings: Settings, store: "Store") -> int:
    findings = examine(settings)
    for finding in findings:
        print(finding)
    return 1 if any(finding.bad for finding in findings) else 0


def _migrate(asked: Any, settings: Settings, store: "Store") -> None:
    with data_folder(settings.data_dir):
        store.migrate()
    print("The database has this version's schema.")


def _backup(asked: Any, settings: Settings, store: "Store") -> None:
    store.backup(asked.file, _pages("copying"))
    print(f"The database is copied to {asked.file}.")


def _restore(asked: Any, settings: Settings, store: "Store") -> None:
    with data_folder(settings.data_dir):  # a running server has it, and this ends with a sentence
        kept = store.restore(asked.file, _pages("copying back"))
        store.migrate()
    before = f" The one before is kept as {kept}." if kept else ""
    print(f"The database is the one of {asked.file} again.{before}")


def _export(asked: Any, settings: Settings, store: "Store") -> None:
    if asked.file and asked.file.exists():
        raise Refused(f"{asked.file} is there already; name a new file.")

    async def work() -> int:
        if not asked.file:
            return await _write_all(store, sys.stdout)
        with asked.file.open("x", encoding="utf-8") as file:
            return await _write_all(store, file)

    count = _with_open(settings, store, work)
    print(f"{count} exchanges are written.", file=sys.stderr)


async def _write_all(store: "Store", file: TextIO) -> int:
    people = {user.id: user.name for user in await store.users.list()}
    count, cursor = 0, None
    while True:
        page = await store.exchanges.read(ExchangeFilter(), limit=PAGE, cursor=cursor)
        marks = await store.reviews.marks(exchange.id for exchange in page.items)
        file.writelines(json_line(exchange, marks.get(exchange.id), people) for exchange in page.items)
        count += len(page.items)
        if (cursor := page.next) is None:
            return count


def _user_add(asked: Any, settings: Settings, store: "Store") -> None:
    async def work() -> None:
        if not await store.users.create(asked.name.strip(), await _hashed(), asked.role):
            raise Refused(f"There is an account {asked.name} already.")
        await store.audit.add("", "user.create", asked.name, f"{asked.role}, in a shell")

    if not asked.name.strip():
        raise Refused("The name is empty.")
    _with_open(settings, store, work)
    print(f"The account {asked.name} is made.")


def _user_reset(asked: Any, settings: Settings, store: "Store") -> None:
    async def work() -> None:
        user = await store.users.by_name(asked.name)
        if user is None:
            raise Refused(f"There is no account {asked.name}.")
        await store.users.set_password(user.id, await _hashed())
        await store.sessions.end_all(user.id)
        await store.audit.add("", "user.password", user.name, "in a shell")

    _with_open(settings, store, work)
    print(f"The account {asked.name} has another password, and is signed out everywhere.")


def _user_reset_second_step(asked: Any, settings: Settings, store: "Store") -> None:
    async def work() -> None:
        user = await store.users.by_name(asked.name)
        if user is None:
            raise Refused(f"There is no account {asked.name}.")
        await store.second_factors.turn_off(user.id)
        await store.sessions.end_all(user.id)
        await store.audit.add("", "user.second_step_reset", user.name, "in a shell")

    _with_open(settings, store, work)
    print(f"The account {asked.name} has no second step any more, and is signed out everywhere.")


async def _hashed() -> str:
    password = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise Refused(f"A password has {MIN_LENGTH} to {MAX_LENGTH} characters.")
    passwords = Passwords()
    try:
        return await passwords.hash(password)
    finally:
        passwords.close()


def _with_open(settings: Settings, store: "Store", work: Callable[[], Any]) -> Any:
    """Run with the store open: by oneself, or beside the server that has the data folder."""
    with ExitStack() as stack:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            stack.enter_context(FileLock(settings.data_dir / LOCK_FILE, timeout=0, mode=0o600))
        except Timeout:
            store.open(beside=True)
        else:
            store.open()
        stack.callback(store.close)
        return asyncio.run(work())


def _pages(stage: str) -> Callable[[int, int], None]:
    report = console()
    return lambda done, total: report(Progress(stage, done, total))
