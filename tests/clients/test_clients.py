"""Clients of other houses at a real server, each as its own documentation says it is used.

Whatever is refused must come out as the client's own error, with our status and sentence, and soon.
"""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.clients.conftest import PROGRAMS, needed
from tests.clients.environments import command
from tests.clients.talking import Program
from tests.server import API_KEY, RunningServer, bearer, eventually, key_of, running_server

LISTS_MODELS = ("openai", "openai-1", "npm-openai")  # the others know no more than what they are told
LEAVES = tuple(name for name in PROGRAMS if name != "llm")  # which lets go of an answer when its process ends


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def full() -> Iterator[RunningServer]:
    """A server whose one place is taken, by Ada."""
    with running_server(
        accounts={"ada": "staff", "bob": "staff"}, max_concurrent_requests=1, max_waiting_requests=0,
        max_requests_per_user=1,
    ) as running:  # fmt: skip
        endless = {"messages": [{"role": "user", "content": "stand still"}], "stream": True}
        with httpx.stream(
            "POST", running.url + "/v1/chat/completions", json=endless, headers=bearer(key_of("ada"))
        ) as answer:
            assert answer.status_code == 200
            yield running


def refused(answer: dict[str, Any], status: int, sentence: str) -> None:
    """The client raised an error of its own that knows our status and says our sentence."""
    assert "error" in answer, answer
    assert answer["status"] == status, answer
    assert sentence in answer["message"]


@pytest.mark.parametrize("client", LISTS_MODELS, indirect=True, scope="module")
def test_the_model_is_listed(client: Program, server: RunningServer) -> None:
    assert client.order("models", server.url) == {"models": ["scripted"]}


@pytest.mark.parametrize("do", ["ask", "stream"])
def test_a_question_is_answered(client: Program, server: RunningServer, do: str) -> None:
    answer = client.order(do, server.url, "Say 你好 👋")
    pieces = answer.pop("pieces")
    assert "".join(pieces) == "You said: Say 你好 👋"
    assert len(pieces) == (1 if do == "ask" else 6)
    assert answer == {"tokens": 15}  # the system prompt's five among them


@pytest.mark.parametrize("do", ["ask", "stream"])
def test_a_conversation_goes_on(client: Program, server: RunningServer, do: str) -> None:
    answer = client.order(do, server.url, "one", "You said: one", "two")
    assert "".join(answer["pieces"]) == "You said: two"
    ((roles,),) = server.rows(
        "select group_concat(json_extract(value, '$.role')) from exchanges, json_each(messages) "
        "where exchanges.id = (select id from exchanges order by queued_at desc limit 1)"
    )
    assert roles == "system,user,assistant,user"


@pytest.mark.parametrize("do", ["ask", "stream"])
def test_a_wrong_key_is_told(client: Program, server: RunningServer, do: str) -> None:
    refused(client.order(do, server.url, key="sk-qdesk-wrong"), 401, "There is no such API key.")


@pytest.mark.parametrize("do", ["ask", "stream"])
def test_a_full_queue_is_told_after_a_few_tries(client: Program, full: RunningServer, do: str) -> None:
    """Clients try twice more by themselves, each time after as long as `Retry-After` says."""
    refused(client.order(do, full.url, key=key_of("bob")), 503, "Every place is taken, running and waiting")


def test_the_own_limit_is_told(client: Program, full: RunningServer) -> None:
    refused(client.order("ask", full.url, key=key_of("ada")), 429, "One person may have 1 running and waiting at once")


@pytest.mark.parametrize(
    ("parts", "status", "sentence"),
    [
        ({"say": ["  "]}, 400, "The prompt is empty."),
        ({"say": ["word " * 5000]}, 400, "4096"),
        ({"model": "gpt-4o"}, 404, "There is no model 'gpt-4o' here. Running: scripted"),
        ({"say": ["fail before"]}, 500, "The script says to fail before the first token."),
    ],
    ids=["empty", "too-long", "model", "engine"],
)
def test_what_cannot_be_answered_is_told(
    client: Program, server: RunningServer, parts: dict[str, Any], status: int, sentence: str
) -> None:
    refused(client.order("ask", server.url, **parts), status, sentence)


@pytest.mark.parametrize(
    ("do", "sentence"), [("tools", "tools is not supported by this server"), ("schema", "A script cannot keep")]
)
def test_what_this_model_cannot_do_is_told(client: Program, server: RunningServer, do: str, sentence: str) -> None:
    refused(client.order(do, server.url), 400, sentence)


def test_an_answer_that_breaks_off_is_an_error_and_no_end(client: Program, server: RunningServer) -> None:
    answer = client.order("stream", server.url, "fail midway")
    assert "error" in answer, answer
    assert "The script says to fail midway." in answer["message"]


@pytest.mark.parametrize("client", LEAVES, indirect=True, scope="module")
def test_whoever_leaves_an_answer_frees_its_place(client: Program, server: RunningServer) -> None:
    client.order("leave", server.url, f"long, for {client.name}")
    eventually(lambda: _statuses(server, f"long, for {client.name}") == ["disconnected"])


def test_the_command_llm(server: RunningServer, tmp_path: Path) -> None:
    """As people use it in a shell: a model in a file, a key in llm's keeping, Ctrl-C when it is enough."""
    needed("llm")
    llm, environment = command("llm", "llm"), {**os.environ, "LLM_USER_PATH": str(tmp_path), "QDESK": API_KEY}
    models = "- model_id: qdesk\n  model_name: default\n  api_base: {}/v1\n  api_key_name: qdesk\n"
    (tmp_path / "extra-openai-models.yaml").write_text(models.format(server.url), encoding="utf-8")

    def run(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([llm, *arguments], env=environment, capture_output=True, text=True, encoding="utf-8")

    refusal = run("-m", "qdesk", "--key", "sk-qdesk-wrong", "hello")
    assert (refusal.returncode, refusal.stderr.strip()) == (1, "Error: Error code: 401 - There is no such API key.")
    assert run("keys", "set", "qdesk", "--value", API_KEY).returncode == 0
    assert run("-m", "qdesk", "hello").stdout.strip() == "You said: hello"
    with subprocess.Popen([llm, "-m", "qdesk", "long, in a shell"], env=environment, stdout=subprocess.PIPE) as reading:
        assert reading.stdout
        assert reading.stdout.read(5) == b"word0"
        reading.send_signal(signal.SIGINT)
    eventually(lambda: _statuses(server, "long, in a shell") == ["disconnected"])


def _statuses(server: RunningServer, prompt: str) -> list[str]:
    return [status for (status,) in server.rows("select status from exchanges where prompt = ?", prompt)]
