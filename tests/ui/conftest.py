"""One server for the tests that leave nothing behind (those that need other settings start their own), and a desk."""

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from engine.settings import Settings
from tests.databases import new_store
from tests.server import RunningServer, running_server
from tests.ui.desks import started_again
from ui.desk import Desk


@pytest.fixture(scope="session")
def server() -> Iterator[RunningServer]:
    with running_server(accounts={"ada": "staff", "bob": "staff", "eve": "staff", "rita": "reviewer"}) as running:
        yield running


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk, None]:
    """What main builds, on a store of its own, without a server around it."""
    store = new_store(tmp_path / "qdesk.db")
    yield started_again(Settings(backend="scripted", data_dir=tmp_path), store)
    store.close()
