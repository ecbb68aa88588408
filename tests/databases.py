"""New databases with accounts in them. The schema is made once and copied, and the password is hashed once.

What these spare is tested where it is the subject: migrations in tests/storage/test_migrations.py, passwords in
tests/ui/test_sign_in.py, the first account in tests/test_starting.py.
"""

import asyncio
import os
import tempfile
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from argon2 import PasswordHasher

from storage import Store
from storage.records import UserRole
from ui.seal import Seal

T = TypeVar("T")

PASSWORD = "correct horse battery"  # of every account
SECRET = "the session secret of the tests"


def new_database(file: Path, accounts: Mapping[str, UserRole] | None = None, *, keys: bool = True) -> None:
    """Make SQLite's file with the newest schema, and accounts with PASSWORD and, if `keys`, the key `key_of(name)`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as output:
        output.write(_newest())
    add_accounts(file, accounts or {}, keys=keys)


def add_accounts(file: Path, accounts: Mapping[str, UserRole], *, keys: bool = True) -> None:
    if accounts:
        in_a_thread(_add_accounts(Store(f"sqlite:///{file}"), accounts, keys))


def add_accounts_at(url: str, accounts: Mapping[str, UserRole]) -> None:
    """The same in any database that has the newest schema and is in nobody's use."""
    in_a_thread(_add_accounts(Store(url), accounts, keys=True))


def new_store(file: Path) -> Store:
    """A store that is open, on a new database."""
    new_database(file)
    store = Store(f"sqlite:///{file}")
    store.open()
    return store


def key_of(name: str) -> str:
    """The API key of an account that `new_database` made."""
    return f"sk-qdesk-{name}-key-of-the-tests"


@cache
def password_hash() -> str:
    return PasswordHasher().hash(PASSWORD)


def in_a_thread(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine, also where a loop runs already."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


@cache
def _newest() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "qdesk.db"
        store = Store(f"sqlite:///{file}")
        store.open()
        store.close()
        return file.read_bytes()


async def _add_accounts(store: Store, accounts: Mapping[str, UserRole], keys: bool) -> None:
    store.open()
    for name, role in accounts.items():
        user = await store.users.create(name, password_hash(), role)
        assert user is not None
        if keys:
            sealed = Seal(SECRET.encode())("api key", key_of(name))
            await store.api_keys.create(user.id, "tests", sealed, key_of(name)[:13])
    store.close()
