"""A PostgreSQL of the tests' own: Debian's, in a folder that goes with the tests, as fast as one that may lose all.

    new_database()      the URL of an empty database; None where there is no PostgreSQL
    migrated()          the URL of a new database with the newest schema, copied from one that was migrated once

Nobody else's is touched: it listens on a socket file in its folder, and on no port.
"""

import atexit
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import sqlalchemy as sa

from storage import Store

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
RUNS_AS = "postgres"  # it refuses to run as root
MISSING = "No PostgreSQL is found; on Debian: apt-get install postgresql"
HASTY = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "listen_addresses=", "max_connections=200")
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
    """Connections to the server, which is started with the first and ends with the tests."""
    folder = _folder()
    options = [part for option in (*HASTY, f"unix_socket_directories={folder}") for part in ("-c", option)]
    _run("initdb", "-D", str(folder / "data"), "-U", RUNS_AS, "-A", "trust", "-E", "UTF8", "--no-sync")
    _run("pg_ctl", "-D", str(folder / "data"), "-l", str(folder / "log"), "-w", "-o", " ".join(options), "start")
    atexit.register(_end, folder)
    return sa.create_engine(_url("postgres"), isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)


def _end(folder: Path) -> None:
    _run("pg_ctl", "-D", str(folder / "data"), "-m", "immediate", "stop")
    shutil.rmtree(folder)


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="qdesk-postgresql-"))
    if os.getuid() == 0:
        account = pwd.getpwnam(RUNS_AS)
        os.chown(folder, account.pw_uid, account.pw_gid)
    return folder


def _url(database: str) -> str:
    return f"postgresql+psycopg://{RUNS_AS}@/{database}?host={_folder()}"


def _run(program: str, *arguments: str) -> None:
    account = RUNS_AS if os.getuid() == 0 else None
    done = subprocess.run(  # its output goes to no pipe: the server would hold that open
        [str(PROGRAMS[0] / program), *arguments],
        cwd="/",
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=account,
        group=account,
        extra_groups=[] if account else None,
    )
    assert done.returncode == 0, f"{program} ended with {done.returncode}; see {_folder() / 'log'}"
