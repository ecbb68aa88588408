"""`user ...`: what an operator does to accounts in a shell, also where nobody can sign in any more. All is audited."""

import argparse
import getpass
import sys
from typing import TYPE_CHECKING, Any

from engine.settings import Settings
from ui.console.opened import Refused, with_open
from ui.passwords import MAX_LENGTH, MIN_LENGTH, Passwords
from ui.seal import open_seal
from ui.serving import base_url
from ui.sign_in.links import new_link

if TYPE_CHECKING:
    from storage import Store
    from storage.records import User

ROLES = ("staff", "reviewer", "admin")


def add_user_commands(user: argparse.ArgumentParser) -> None:
    actions = user.add_subparsers(required=True, metavar="action")
    add = actions.add_parser("add", help="make an account; the password is asked for, or read from standard input")
    add.add_argument("name")
    add.add_argument("--role", choices=ROLES, default="staff")
    add.set_defaults(work=_add)
    for action, work, about in (
        ("reset-password", _reset_password, "give another password, and end all sessions of the account"),
        ("reset-second-step", _reset_second_step, "ask for no code any more, and end all sessions of the account"),
        ("link", _link, "print a link that signs in to the account once, within ten minutes"),
    ):
        parser = actions.add_parser(action, help=about)
        parser.add_argument("name")
        parser.set_defaults(work=work)


def _add(asked: Any, settings: Settings, store: "Store") -> None:
    async def work() -> None:
        if not await store.users.create(asked.name.strip(), await _hashed(), asked.role):
            raise Refused(f"There is an account {asked.name} already.")
        await store.audit.add("", "user.create", asked.name, f"{asked.role}, in a shell")

    if not asked.name.strip():
        raise Refused("The name is empty.")
    with_open(settings, store, work)
    print(f"The account {asked.name} is made.")


def _reset_password(asked: Any, settings: Settings, store: "Store") -> None:
    async def work() -> None:
        user = await _named(store, asked.name)
        await store.users.set_password(user.id, await _hashed())
        await store.sessions.end_all(user.id)
        await store.audit.add("", "user.password", user.name, "in a shell")

    with_open(settings, store, work)
    print(f"The account {asked.name} has another password, and is signed out everywhere.")


def _reset_second_step(asked: Any, settings: Settings, store: "Store") -> None:
    async def work() -> None:
        user = await _named(store, asked.name)
        await store.second_factors.turn_off(user.id)
        await store.sessions.end_all(user.id)
        await store.audit.add("", "user.second_step_reset", user.name, "in a shell")

    with_open(settings, store, work)
    print(f"The account {asked.name} has no second step any more, and is signed out everywhere.")


def _link(asked: Any, settings: Settings, store: "Store") -> None:
    async def work() -> str:
        user = await _named(store, asked.name)
        if user.disabled:
            raise Refused(f"The account {asked.name} is disabled.")
        await store.audit.add("", "user.sign_in_link", user.name, "in a shell")
        return await new_link(store, open_seal(settings), user)

    print(base_url(settings) + with_open(settings, store, work))


async def _named(store: "Store", name: str) -> "User":
    user = await store.users.by_name(name)
    if user is None:
        raise Refused(f"There is no account {name}.")
    return user


async def _hashed() -> str:
    password = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not MIN_LENGTH <= len(password) <= MAX_LENGTH:
        raise Refused(f"A password has {MIN_LENGTH} to {MAX_LENGTH} characters.")
    passwords = Passwords()
    try:
        return await passwords.hash(password)
    finally:
        passwords.close()
