"""How the tests are shared out between the workers of `pytest -n`, which `make test` uses, and run. Knows no test.

Hypothesis's examples are the same in every run, so that none fails by chance. `CHANCE=1 pytest FILE` tries new ones;
what they find becomes an `@example`.
"""

import gc
import os
from collections.abc import Iterator
from functools import cache

import httpx
import hypothesis
import pytest
from httpx._transports import default
from loguru import logger
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

gc.disable()  # what is imported and collected stays; looking for garbage among it takes much of the tests' time

# Otherwise each `httpx.get` reads all certificates of the web anew, which costs more than what most of them ask for.
default.create_ssl_context = cache(httpx.create_ssl_context)  # type: ignore[attr-defined]  # httpx exports it elsewhere

hypothesis.settings.register_profile("alike", derandomize="CHANCE" not in os.environ)
hypothesis.settings.load_profile("alike")

CROWD = "tests/test_server_load.py"
MODEL = "tests/engine/backends/qwen2/"


@pytest.fixture
def logged() -> Iterator[list[str]]:
    """The texts of what is logged meanwhile."""
    lines: list[str] = []
    handler = logger.add(lambda message: lines.append(message.record["message"]), level="INFO")
    yield lines
    logger.remove(handler)


class ByFile(LoadFileScheduling):
    """A file's tests stay on one worker, so that what they share is made once; one worker alone reads the model.

    With `--no-loadscope-reorder` what takes longest comes first, and the others fill up the rest. The crowd waits more
    than it works: whoever has it takes nothing else, and leaves the processors to the other workers.
    """

    def _split_scope(self, nodeid: str) -> str:
        return MODEL if nodeid.startswith(MODEL) else super()._split_scope(nodeid)

    def _reschedule(self, node: WorkerController) -> None:
        if CROWD in self.assigned_work[node] and len(self.nodes) > 1 and not node.shutting_down:
            node.shutdown()  # when it has done what it has
        super()._reschedule(node)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.enable()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    return ByFile(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(CROWD))
