"""How long the review inbox waits for its lists on PostgreSQL: the questions and the log of bench/search.py.

    python -m bench.search_postgresql --rows 100000

Debian's PostgreSQL runs in a folder that goes with the run. All rows are there first, then the index over their texts,
then what the planner knows of them, as after some time of use.
"""

import argparse
import asyncio
import time
from dataclasses import asdict
from datetime import UTC, datetime

import sqlalchemy as sa

from bench.report import save
from bench.search import BATCH, PEOPLE, Figure, ask, exchange
from storage import Store, text_index
from storage.models import Base
from storage.rows import to_values
from tests import postgresql


def make(url: str, rows: int) -> None:
    """Fill the database, which has the newest schema."""
    people = asyncio.run(_people(url))
    table = Base.metadata.tables["exchanges"]
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"DROP INDEX {text_index.NAME}")
        for first in range(0, rows, BATCH):
            batch = [to_values(exchange(number, rows, people)) for number in range(first, min(rows, first + BATCH))]
            connection.execute(sa.insert(table), batch)
        connection.exec_driver_sql(text_index.MAKE)
        connection.exec_driver_sql("VACUUM ANALYZE exchanges")


async def _people(url: str) -> list[str]:
    store = Store(url)
    store.open()
    made = [await store.users.create(f"person {number}", "no password", "staff") for number in range(PEOPLE)]
    store.close()
    return [user.id for user in made if user]


async def asked(url: str, times: int) -> list[Figure]:
    store = Store(url)
    store.open()
    figures = await ask(store, times)
    store.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    given, began = parser.parse_args(), datetime.now(UTC)
    url, begun = postgresql.migrated(), time.perf_counter()
    make(url, given.rows)
    print(f"made {given.rows} rows in {time.perf_counter() - begun:.0f} s")
    figures = asyncio.run(asked(url, given.times))
    lines = [f"| {one.question} | {one.rows} | {one.median_s:.3f} | {one.slowest_s:.3f} |" for one in figures]
    table = "\n".join(["| question | rows | median s | slowest s |", "|---|---|---|---|", *lines])
    save(began, table, {"rows": given.rows, "figures": [asdict(one) for one in figures]})


if __name__ == "__main__":
    main()
