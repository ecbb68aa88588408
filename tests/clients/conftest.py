"""The clients as their programs run here, and what is left out where one is not installed."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.environments import JAVASCRIPT, is_there, node, python_of, scripts
from tests.clients.talking import Program, program
from tests.server import ROOT

PROGRAMS = {  # the environment, and what runs in it; openai's current version is among our own packages
    "openai": ("", "openai_python"),
    "openai-1": ("openai-1", "openai_python"),
    "langchain-openai": ("langchain-openai", "langchain"),
    "pydantic-ai": ("pydantic-ai", "pydantic"),
    "llm": ("llm", "llm_package"),
    "npm-openai": (JAVASCRIPT, "openai.mjs"),
    "npm-ai-sdk": (JAVASCRIPT, "ai_sdk.mjs"),
}
ALL = "ALL_CLIENTS"  # set by `make clients`, which has installed them all: none may be left out


@pytest.fixture(scope="module", params=PROGRAMS)
def client(request: pytest.FixtureRequest) -> Iterator[Program]:
    environment, name = PROGRAMS[request.param]
    needed(*([environment] if environment else []))
    with program(request.param, *_run(environment, name)) as running:
        yield running


def needed(*environments: str) -> None:
    """Leave the test out, by name, where one of these environments is not made."""
    for missing in [name for name in environments if not is_there(name)]:
        if os.environ.get(ALL):
            pytest.fail(f"{missing} is not installed")
        pytest.skip(f"{missing} is not installed: make clients")


def _run(environment: str, name: str) -> tuple[list[str | Path], Path]:
    """The command, and the folder where it runs."""
    if environment == JAVASCRIPT:
        return [*node(), name], scripts()
    return [python_of(environment) if environment else sys.executable, "-m", f"tests.clients.programs.{name}"], ROOT
