"""The examples in docs/api.md run as they stand there, each with the client that it is for."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.conftest import needed
from tests.clients.environments import JAVASCRIPT, node, python_of, scripts
from tests.server import API_KEY, ROOT, RunningServer, running_server

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"^### (`[^\n]+)\n\n```\w+\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
RUN_IN = {
    "`openai`, Python": ("", "openai-1"),
    "`openai`, JavaScript": (JAVASCRIPT,),
    "`@ai-sdk/openai-compatible`": (JAVASCRIPT,),
    "`langchain-openai`": ("langchain-openai",),
    "`pydantic-ai-slim`": ("pydantic-ai",),
    "`llm`": ("llm",),
}


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server() as running:
        yield running


def test_every_example_is_run() -> None:
    assert EXAMPLES.keys() == RUN_IN.keys()


@pytest.mark.parametrize(
    ("name", "environment"), [(name, environment) for name, those in RUN_IN.items() for environment in those]
)
def test_an_example_answers(server: RunningServer, tmp_path: Path, name: str, environment: str) -> None:
    needed(*([environment] if environment else []))
    variables = {
        **os.environ,
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "OPENAI_API_KEY": API_KEY,
        "LLM_USER_PATH": str(tmp_path),
    }
    if environment:
        variables["PATH"] = f"{python_of(environment).parent}{os.pathsep}{variables['PATH']}"
    command, folder = _run(EXAMPLES[name], environment, tmp_path)
    run = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, encoding="utf-8")
    assert run.stdout.strip() == "You said: Say hello.", run.stderr


def _run(example: str, environment: str, folder: Path) -> tuple[list[str], Path]:
    """The command, and the folder where it runs."""
    if environment == JAVASCRIPT:
        return [*node(), "--input-type=module", "--eval", example], scripts()
    if environment == "llm":
        return ["bash", "-ec", example], folder
    return [str(python_of(environment)) if environment else sys.executable, "-c", example], folder
