"""One server for the tests that leave nothing behind; tests that need other settings start their own."""

from collections.abc import Iterator

import pytest

from tests.server import RunningServer, running_server


@pytest.fixture(scope="session")
def server() -> Iterator[RunningServer]:
    with running_server(accounts={"ada": "staff", "bob": "staff", "eve": "staff", "rita": "reviewer"}) as running:
        yield running
