"""Holding a PostgreSQL database: for one process alone, or together with others that share it.

The hold is an advisory lock of the connection, which the server lets go when the process or its machine is gone. Knows
no table.
"""

import time
from typing import Any

import psycopg
import sqlalchemy as sa

from storage.errors import StorageError

HELD = 7_151_000_002  # the lock's name, anything that no other program uses
WAITS_S = 1.0  # the server needs a moment to notice that a process was killed
KEEPALIVE = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
TAKEN = {
    True: "Another Qdesk is running on this database. Several of them need QDESK_BACKEND=remote; one with the engine "
    "inside needs a database of its own.",
    False: "A Qdesk with the engine inside is running on this database. Stop it, or give all of them "
    "QDESK_BACKEND=remote.",
}


def claim(url: sa.URL, *, alone: bool) -> "psycopg.Connection[Any]":
    """A connection that holds the database until it is closed. Raises StorageError where others hold it."""
    lock = "pg_try_advisory_lock" if alone else "pg_try_advisory_lock_shared"
    try:
        connection = psycopg.connect(
            url.set(drivername="postgresql").render_as_string(hide_password=False), autocommit=True, options=KEEPALIVE
        )
        until = time.monotonic() + WAITS_S
        while not _told(connection.execute(f"SELECT {lock}(%s)", [HELD])):
            if time.monotonic() > until:
                connection.close()
                raise StorageError(TAKEN[alone])
            time.sleep(0.1)
    except psycopg.Error as error:
        raise StorageError(f"The database {url.render_as_string()} cannot be opened: {str(error).strip()}.") from error
    return connection


def _told(cursor: "psycopg.Cursor[Any]") -> bool:
    row = cursor.fetchone()
    return bool(row and row[0])
