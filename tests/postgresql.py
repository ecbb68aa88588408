"""A PostgreSQL of the tests' own: Debian's, in a folder that goes with the tests, as fast as one that may lose all.

    new_database()      the URL of an empty database; None where there is no PostgreSQL
    migrated()          the URL of a new database with the newest schema, copied from one that was migrated once

Nobody else's is touched: it listens on a socket file in its folder, and on no port.
"""

import atexit
import itertools
import os
import pwd
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from storage import Store
from tests.server import eventually

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
RUNS_AS = "postgres"  # it refuses to run as root
MISSING = "No PostgreSQL is found; on Debian: apt-get install postgresql"
HASTY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "listen_addresses=", "max_connections=200")
KEEPER = '"$@" & read -r _; kill -QUIT $!; wait; rm -rf "$0"'  # ends it when nobody holds the other end of its input
_numbers = itertools.count()


def there_is_one() -> bool:
    return bool(PROGRAMS)


def new_database(template: str = "template1") -> str:
    name = f"tests_{next(_numbers)}"
    with _server().connect() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    return _url(name)


def migrated() -> str:
    return new_database(_template())


@cache
def _template() -> str:
    with _server().connect() as connection:
        connection.exec_driver_sql("CREATE DATABASE newest")
    Store(_url("newest")).migrate()
    return "newest"


@cache
def _server() -> sa.Engine:
    """Connections to the server, which is started with the first and ends with the tests, also when they are killed."""
    folder = _folder()
    made = subprocess.run(
        [PROGRAMS[0] / "initdb", "-D", folder / "data", "-U", RUNS_AS, "-A", "trust", "--locale=C.UTF-8", "--no-sync"],
        **_as_its_own_user(),
    )
    assert made.returncode == 0, f"initdb ended with {made.returncode}"
    options = [part for option in (*HASTY, f"unix_socket_directories={folder}") for part in ("-c", option)]
    command = ["sh", "-c", KEEPER, str(folder), str(PROGRAMS[0] / "postgres"), "-D", str(folder / "data"), *options]
    keeper = subprocess.Popen(command, stdin=subprocess.PIPE, **_as_its_own_user())
    atexit.register(_end, keeper)
    server = sa.create_engine(_url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    eventually(lambda: _answers(server))
    return server


def _answers(server: sa.Engine) -> bool:
    try:
        server.connect().close()
    except sa.exc.OperationalError:
        return False
    return True


def _end(keeper: "subprocess.Popen[bytes]") -> None:
    assert keeper.stdin
    keeper.stdin.close()
    keeper.wait()


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="qdesk-postgresql-"))
    if os.getuid() == 0:
        account = pwd.getpwnam(RUNS_AS)
        os.chown(folder, account.pw_uid, account.pw_gid)
    return folder


def _url(database: str) -> str:
    return f"postgresql+psycopg://{RUNS_AS}@/{database}?host={_folder()}"


def _as_its_own_user() -> dict[str, Any]:
    account = {"user": RUNS_AS, "group": RUNS_AS, "extra_groups": []} if os.getuid() == 0 else {}
    return {"cwd": "/", "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **account}
