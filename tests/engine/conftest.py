"""What the tests of the engine share."""

from collections.abc import AsyncGenerator

import pytest

from engine.service import ChatService
from tests.engine.kit import UnrulyBackend, assert_empty, service_on


@pytest.fixture
async def service() -> AsyncGenerator[ChatService, None]:
    """One place to run and one to wait; whatever a test does, nothing may be left of it."""
    service = await service_on(UnrulyBackend(), max_concurrent_requests=1, max_waiting_requests=1, drain_s=0)
    yield service
    await service.stop()
    assert_empty(service)
