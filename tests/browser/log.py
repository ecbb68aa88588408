"""A log that is there before the server starts: accounts and exchanges for the review page's tests.

All have the password of tests/server.py. `rita` reviews; `ada` and 王小明 are staff.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from engine.types import Exchange
from storage import Store
from tests.databases import in_a_thread, new_store, password_hash
from tests.server import RunningServer

ROLES = {"admin": "admin", "rita": "reviewer", "other reviewer": "reviewer", "ada": "staff", "王小明": "staff"}


def write_log(data_dir: Path, exchanges: Iterable[Exchange], names: Iterable[str] = ()) -> None:
    """Make the database with these accounts and exchanges. An exchange's `person` is the account's name here.

    `names` are staff beside those of ROLES. Conversations are made for the ids that the exchanges carry.
    """
    in_a_thread(_write(new_store(data_dir / "qdesk.db"), list(exchanges), list(names)))


def audit(server: RunningServer, action: str) -> list[tuple[str, str, str]]:
    """Actor, target and detail of each entry, oldest first."""
    with closing(sqlite3.connect(server.data_dir / "qdesk.db")) as database:
        return database.execute(
            "select actor, target, detail from audit where action = ? order by id", (action,)
        ).fetchall()


async def _write(store: Store, exchanges: list[Exchange], names: list[str]) -> None:
    try:
        ids = {}
        for name, role in [*ROLES.items(), *((name, "staff") for name in names)]:
            user = await store.users.create(name, password_hash(), role)  # type: ignore[arg-type]  # the roles above
            assert user
            ids[name] = user.id
        conversations: dict[str, str] = {}
        for exchange in exchanges:
            person = ids[exchange.person] if exchange.person else None
            named = exchange.conversation_id
            if named and person and named not in conversations:
                conversations[named] = (await store.conversations.create(person)).id
            conversation = conversations[named] if named else None
            await store.exchanges.record(replace(exchange, person=person, conversation_id=conversation))
    finally:
        store.close()
