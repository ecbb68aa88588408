"""The commands of main.py beside serving: reads the arguments, does the work, says in a line what came of it.

Knows the store by what it is given. The exit status is 0, 1 where the work could not be done, 2 for wrong arguments.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from engine.progress import console
from engine.settings import Settings
from engine.types import ExchangeFilter, Progress
from ui.components.review.export import json_line
from ui.console.doctor import examine
from ui.console.opened import Refused, with_open
from ui.console.restoring import restore
from ui.console.users import add_user_commands
from ui.starting import data_folder

if TYPE_CHECKING:
    from storage import Store

PAGE = 200  # exchanges that are read at once


Work = Callable[[Any, Settings, "Store"], int | None]


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

    def command(name: str, work: Work | None, about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=about, description=about)
        added.set_defaults(work=work)
        return added

    command("doctor", _doctor, "Look at machine, model, folders, port and database; say what to do.")
    command("migrate", _migrate, "Bring the database to this version's schema.")
    copy = command("backup", _backup, "Copy the SQLite database into a new file, also while the server runs.")
    copy.add_argument("file", type=Path)
    back = command("restore", _restore, "Put a copy in the place of the SQLite database, also while the server runs.")
    back.add_argument("file", type=Path)
    out = command("export", _export, "Write every logged exchange as a JSON line.")
    out.add_argument("file", type=Path, nargs="?", help="a new file; without one, standard output")
    user = command("user", None, "Make an account, give it another password, or let somebody in who cannot sign in.")
    add_user_commands(user)
    return parser


def _doctor(asked: Any, settings: Settings, store: "Store") -> int:
    findings = examine(settings, store)
    for finding in findings:
        print(finding)
    return 1 if any(finding.bad for finding in findings) else 0


def _migrate(asked: Any, settings: Settings, store: "Store") -> None:
    with data_folder(settings.data_dir):
        store.migrate(_counted("migrating"))
    print("The database has this version's schema.")


def _backup(asked: Any, settings: Settings, store: "Store") -> None:
    store.backup(asked.file, _counted("copying"))
    print(f"The database is copied to {asked.file}.")


def _restore(asked: Any, settings: Settings, store: "Store") -> None:
    kept = restore(asked.file, settings, store, _counted)
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

    count = with_open(settings, store, work)
    print(f"{count} exchanges are written.", file=sys.stderr)


async def _write_all(store: "Store", file: TextIO) -> int:
    people = {user.id: user.name for user in await store.users.list()}
    report, total = _counted("exporting"), await store.exchanges.count()
    count, cursor = 0, None
    while True:
        page = await store.exchanges.read(ExchangeFilter(), limit=PAGE, cursor=cursor)
        marks = await store.reviews.marks(exchange.id for exchange in page.items)
        file.writelines(json_line(exchange, marks.get(exchange.id), people) for exchange in page.items)
        count += len(page.items)
        report(count, max(count, total))  # some came meanwhile
        if (cursor := page.next) is None:
            return count


def _counted(stage: str) -> Callable[[int, int], None]:
    report = console()
    return lambda done, total: report(Progress(stage, done, total))
