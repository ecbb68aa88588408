"""Every row of the table of errors, at the real server: status, code, the part that is wrong; never a 500."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.server import RunningServer, bearer, key_of, running_server

CHAT = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "hello"}]}


@pytest.fixture
def program(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers=bearer(), timeout=30) as program:
        yield program


def error_of(response: httpx.Response) -> dict[str, str | None]:
    """The error, after the checks that hold for all of them."""
    error: dict[str, str | None] = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert len(response.headers["x-request-id"]) == 32
    assert "Traceback" not in response.text
    return error


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"messages": None}, "messages"),
        ({"messages": "hello"}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [123]}, "messages[0]"),
        ({"messages": [{}]}, "messages[0].role"),
        ({"messages": [{"role": 123, "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 123}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": None}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "  "}]}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0]"),
        ({"temperature": -1}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "0"}, "temperature"),
        ({"temperature": 1e999}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"top_k": 1.5}, "top_k"),
        ({"repetition_penalty": 0}, "repetition_penalty"),
        ({"seed": 10**30}, "seed"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"stop": [""]}, "stop"),
        ({"stop": ["a"] * 9}, "stop"),
        ({"stop": 3}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"n": 0}, "n"),
        ({"n": 9}, "n"),
        ({"frequency_penalty": 2.5}, "frequency_penalty"),
        ({"presence_penalty": -3}, "presence_penalty"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
        ({"top_logprobs": 1}, "top_logprobs"),
        ({"logprobs": 1}, "logprobs"),
        ({"user": 3}, "user"),
        ({"user": "x" * 201}, "user"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {"a": "x" * 513}}, "metadata.a"),
        ({"metadata": {str(i): "" for i in range(17)}}, "metadata"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"functions": [{"name": "f"}]}, "functions"),
        ({"function_call": "auto"}, "function_call"),
        ({"audio": {"voice": "x"}}, "audio"),
        ({"modalities": ["text", "audio"]}, "modalities"),
        ({"logit_bias": {"1": 5}}, "logit_bias"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "text", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages[0].content[0]"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"response_format": {"type": "json_object"}}, "response_format"),  # a script cannot
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
    ],
    ids=str,
)
def test_a_wrong_part_is_400_and_named(program: httpx.Client, change: dict[str, object], param: str) -> None:
    response = program.post(CHAT, content=json.dumps({**HELLO, **change}))
    assert response.status_code == 400
    assert error_of(response)["param"] == param
    assert error_of(response)["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "good",
    [
        {"temperature": 0},
        {"temperature": 2},
        {"max_tokens": 10**9},
        {"max_tokens": None, "stop": None, "seed": None, "stream": None, "n": 1, "tools": []},
        {"modalities": ["text"], "tool_choice": "none", "metadata": {"a": "b"}, "presence_penalty": 2},
        {"seed": -5, "top_k": 0, "ignore_eos": True, "repetition_penalty": 1},
        {"unknown": {"fields": ["are", "ignored"]}, "user": "x", "logit_bias": {}},
        {"response_format": {"type": "text"}},
        {
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": "hello", "name": "x"},
            ]
        },
        {"model": ""},
    ],
    ids=str,
)
def test_what_is_allowed_is_answered(program: httpx.Client, good: dict[str, object]) -> None:
    response = program.post(CHAT, json={**HELLO, **good})
    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]["content"] == "You said: hello"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"temperature": NaN, "messages": [{"role": "user", "content": "x"}]}',
        b'{"x": ' + b"[" * 50_000,
        b"[" * 100_000 + b"]" * 100_000,
    ],
    ids=lambda body: repr(body[:30]),
)
@pytest.mark.parametrize("path", [CHAT, "/"])
def test_a_malformed_body_is_400(program: httpx.Client, path: str, body: bytes) -> None:
    response = program.post(path, content=body)
    assert response.status_code == 400, response.text
    assert error_of(response)["type"] == "invalid_request_error"


@pytest.mark.parametrize("path", [CHAT, "/"])
def test_a_huge_body_is_413_and_says_the_limit(program: httpx.Client, path: str) -> None:
    response = program.post(path, content=b'{"prompt": "' + b"a" * 5 * 1024**2 + b'"}')
    assert response.status_code == 413
    assert "4 MiB" in str(error_of(response)["message"])


def test_a_prompt_that_is_too_long_names_both_numbers(program: httpx.Client) -> None:
    response = program.post(CHAT, json={"messages": [{"role": "user", "content": "word " * 5000}]})
    error = error_of(response)
    assert response.status_code == 400
    assert error["code"] == "context_length_exceeded"
    assert "4096" in str(error["message"])
    assert "500" in str(error["message"])


def test_the_persons_own_limit_is_429_with_retry_after() -> None:
    with running_server(accounts={"ada": "staff"}, max_requests_per_user=1) as server:
        headers = bearer(key_of("ada"))
        long = {"messages": [{"role": "user", "content": "long"}], "stream": True}
        with httpx.stream("POST", server.url + CHAT, json=long, headers=headers) as running:
            lines = running.iter_lines()  # kept: the answer is closed with its iterator
            next(lines)
            response = httpx.post(server.url + CHAT, json=HELLO, headers=headers)
            assert response.status_code == 429
            assert error_of(response)["code"] == "user_limit"
            assert int(response.headers["retry-after"]) >= 1


@pytest.mark.parametrize("header", [{}, {"Authorization": "Bearer nonsense"}, {"Authorization": "Basic eDp5"}])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", CHAT),
        ("POST", "/"),
        ("GET", "/v1/models"),
        ("GET", "/v1/requests"),
        ("POST", "/v1/requests/x/cancel"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("GET", "/v1/nothing"),
        ("DELETE", "/v1/../v1/models"),
    ],
)
def test_without_a_good_key_it_is_401(server: RunningServer, method: str, path: str, header: dict[str, str]) -> None:
    response = httpx.request(method, server.url + path, json=HELLO if method == "POST" else None, headers=header)
    assert response.status_code == 401
    assert error_of(response)["code"] == "invalid_api_key"


def test_a_session_cookie_reads_but_does_not_ask(server: RunningServer) -> None:
    with server.sign_in("ada") as browser:
        assert browser.get("/v1/models").status_code == 200
        assert browser.post(CHAT, json=HELLO).status_code == 401
        assert browser.post("/", json={"prompt": "hello"}).status_code == 401


def test_metrics_are_for_administrators(server: RunningServer) -> None:
    with server.sign_in("ada") as browser:
        response = browser.get("/metrics")
        assert response.status_code == 403
        assert error_of(response)["code"] == "forbidden"


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/nothing", "/v1/chat", "/v1/requests/x", "/v1/models/gpt-4o", "/v1/%0d%0a"]
)
def test_an_unknown_path_is_404_as_json(program: httpx.Client, path: str) -> None:
    response = program.get(path)
    assert response.status_code == 404
    assert error_of(response)["code"] in ("not_found", "model_not_found")


def test_clients_that_ask_for_responses_are_told_where_answers_come_from(program: httpx.Client) -> None:
    response = program.post("/v1/responses", json={"model": "default", "input": "hello"})
    assert response.status_code == 404
    assert "/v1/chat/completions" in str(error_of(response)["message"])


def test_frameworks_that_ask_for_objects_by_tools_are_told_of_the_other_way(program: httpx.Client) -> None:
    response = program.post(CHAT, json={**HELLO, "tools": [{"type": "function"}], "tool_choice": "required"})
    assert response.status_code == 400
    assert "response_format" in str(error_of(response)["message"])


def test_a_wrong_method_is_405_as_json(program: httpx.Client) -> None:
    response = program.delete("/v1/models")
    assert response.status_code == 405
    assert error_of(response)["code"] == "method_not_allowed"


def test_a_failure_of_the_engine_is_500_with_the_request_id(program: httpx.Client) -> None:
    response = program.post(CHAT, json={"messages": [{"role": "user", "content": "fail before"}]})
    assert response.status_code == 500
    error = error_of(response)
    assert error["code"] == "engine_error"
    assert response.headers["x-request-id"] in str(error["message"])
