"""Plain completions, and the tokenizer over HTTP."""

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from tests.server import API_KEY, RunningServer, bearer


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def program(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers=bearer(), timeout=60) as program:
        yield program


def test_a_text_is_continued(client: openai.OpenAI, server: RunningServer) -> None:
    answer = client.completions.create(model="default", prompt="Once upon", max_tokens=50)
    assert answer.object == "text_completion"
    assert answer.choices[0].text == "You said: Once upon"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens == 2  # no system prompt, no template
    id = answer.id.removeprefix("cmpl-")
    sql = "select json_extract(messages, '$[0].role'), json_array_length(messages) from exchanges where id = ?"
    assert server.rows(sql, id) == [("text", 1)]


def test_sixteen_tokens_where_nothing_is_said(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="default", prompt="long story")
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 16


def test_it_streams_with_echo_and_several_prompts(client: openai.OpenAI) -> None:
    stream = client.completions.create(model="default", prompt=["a", "b"], n=2, echo=True, stream=True)
    texts = dict.fromkeys(range(4), "")
    ends = []
    for chunk in stream:
        texts[chunk.choices[0].index] += chunk.choices[0].text
        ends += [chunk.choices[0].finish_reason] if chunk.choices[0].finish_reason else []
    assert texts == {0: "aYou said: a", 1: "aYou said: a", 2: "bYou said: b", 3: "bYou said: b"}
    assert ends == ["stop"] * 4


def test_logprobs_are_four_lists_with_offsets(client: openai.OpenAI) -> None:
    told = client.completions.create(model="default", prompt="x", logprobs=1, echo=True).choices[0].logprobs
    assert told is not None
    assert told.tokens == ["You", " said:", " x"]
    assert told.token_logprobs == [0.0, 0.0, 0.0]
    assert told.text_offset == [1, 4, 10]
    assert told.top_logprobs == [{"You": 0.0}, {" said:": 0.0}, {" x": 0.0}]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [1, 2, 3]}, "prompt"),
        ({"prompt": [[1], [2]]}, "prompt"),
        ({"prompt": ["a"] * 5, "n": 2}, "prompt"),
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"logprobs": 21}, "logprobs"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"logit_bias": {"1": 1}}, "logit_bias"),
    ],
    ids=str,
)
def test_a_wrong_part_is_400_and_named(program: httpx.Client, change: dict[str, Any], param: str) -> None:
    refused = program.post("/v1/completions", json={"prompt": "x", **change})
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["param"] == param


def test_tokens_there_and_back(program: httpx.Client) -> None:
    tokens = program.post("/v1/tokenize", json={"prompt": "one two 三四"}).json()
    assert tokens["count"] == len(tokens["tokens"]) == 4
    assert tokens["max_model_len"] == 4096
    assert program.post("/v1/detokenize", json={"tokens": tokens["tokens"]}).json() == {"prompt": "one two 三四"}
    chat = program.post("/v1/tokenize", json={"messages": [{"role": "user", "content": "one"}]})
    assert chat.json()["count"] == 1


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("tokenize", {}, "prompt"),
        ("tokenize", {"prompt": "x", "messages": [{"role": "user", "content": "x"}]}, "prompt"),
        ("detokenize", {}, "tokens"),
        ("detokenize", {"tokens": [-1]}, "tokens"),
        ("detokenize", {"tokens": ["x"]}, "tokens[0]"),
        ("detokenize", {"tokens": [10**12]}, "tokens"),
    ],
    ids=str,
)
def test_what_is_no_text_or_no_token_is_400(program: httpx.Client, path: str, body: dict[str, Any], param: str) -> None:
    refused = program.post(f"/v1/{path}", json=body)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
