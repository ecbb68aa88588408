"""A program that answers many questions at once and says what has been written, until it is killed.

    python crashing_writer.py sqlite:///path

Prints "final ID" when a finished exchange is committed and "partial ID LENGTH" when that much of an answer is.
"""

import asyncio
import sys
from dataclasses import replace
from datetime import UTC, datetime

from engine.types import Status
from storage import Store
from tests.storage.making import an_exchange

WORDS = "一二三 four five "


async def answer(store: Store) -> None:
    while True:
        exchange = an_exchange("ask", "", status=Status.QUEUED, queued_at=datetime.now(UTC), finished_at=None)
        store.exchanges.record(exchange)
        for length in range(1, 4):
            exchange = replace(exchange, status=Status.RUNNING, answer=WORDS * length)
            await store.exchanges.record(exchange)
            print("partial", exchange.id, len(exchange.answer), flush=True)
        exchange = replace(exchange, status=Status.DONE, answer=WORDS * 4, finished_at=datetime.now(UTC))
        await store.exchanges.record(exchange)
        print("final", exchange.id, flush=True)


async def main(url: str) -> None:
    store = Store(url)
    store.open()
    await asyncio.gather(*(answer(store) for _ in range(20)))


asyncio.run(main(sys.argv[1]))
