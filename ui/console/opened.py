"""Commands that work on the database: by themselves, or beside the server that has the data folder."""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from filelock import Timeout

from engine.settings import Settings
from ui.starting import Claim

if TYPE_CHECKING:
    from storage import Store


class Refused(Exception):
    """It cannot be done; the sentence says why."""


def with_open(settings: Settings, store: "Store", work: Callable[[], Any]) -> Any:
    """Run with the store open: by oneself, or beside the server that has the data folder."""
    with ExitStack() as stack:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        claim = Claim(settings.data_dir)
        try:
            claim.acquire()
        except Timeout:
            store.open(beside=True)
        else:
            stack.callback(claim.release)
            store.open()
        stack.callback(store.close)
        return asyncio.run(work())
