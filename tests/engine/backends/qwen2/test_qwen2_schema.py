"""Answers that keep to a JSON schema, and what else is told or weighed at the logits, at a tiny random model."""

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from engine.backends.qwen2 import Qwen2Backend
from engine.backends.qwen2.schema import LONGEST
from engine.errors import InvalidRequest
from engine.types import ChatRequest, Delta, Done, Message, Sampling
from tests.engine.backends.qwen2.tiny import shared_tiny_settings

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "蓝"]}, "minItems": 1, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def backend() -> AsyncIterator[Qwen2Backend]:
    backend = Qwen2Backend(shared_tiny_settings())
    await backend.start(lambda progress: None)
    yield backend
    await backend.stop()


pytestmark = pytest.mark.asyncio(loop_scope="module")


def asking(prompt: str = "Who?", role: str = "user", **sampling: Any) -> ChatRequest:
    values = Sampling(**{"temperature": 1.5, "top_p": 1.0, "top_k": 0, "max_tokens": 400, "seed": 1} | sampling)
    return ChatRequest(messages=(Message(role, prompt),), sampling=values, person=None, source="api")  # type: ignore[arg-type]  # a role


async def answer(backend: Qwen2Backend, request: ChatRequest) -> tuple[str, list[Delta], Done]:
    *events, done = [event async for event in backend.stream(request)]
    assert isinstance(done, Done)
    deltas = [event for event in events if isinstance(event, Delta)]
    return "".join(delta.text for delta in deltas), deltas, done


@pytest.mark.parametrize("seed", range(5))
async def test_even_noise_becomes_json_of_the_schema(backend: Qwen2Backend, seed: int) -> None:
    text, _, done = await answer(backend, asking(json_schema=json.dumps(PERSON), seed=seed))
    person = json.loads(text)
    assert done.finish_reason == "stop"
    assert set(person) == {"name", "age", "tags"}
    assert 0 <= person["age"] <= 150
    assert len(person["name"]) <= 8
    assert set(person["tags"]) <= {"red", "green", "蓝"}


async def test_even_noise_begins_an_object_where_any_will_do(backend: Qwen2Backend) -> None:
    """What `response_format: json_object` asks for; noise goes on with a key until it is cut off."""
    requests = [asking(json_schema='{"type": "object"}', max_tokens=40, seed=seed) for seed in range(4)]
    for text, _, done in await asyncio.gather(*(answer(backend, request) for request in requests)):
        assert done.completion_tokens > 1
        assert any(is_object(text + rest) for rest in ("", '": 0}', ": 0}", "0}", "}", '"}')), text


def is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


async def test_max_tokens_cuts_json_too(backend: Qwen2Backend) -> None:
    text, _, done = await answer(backend, asking(json_schema=json.dumps(PERSON), max_tokens=5))
    assert (done.finish_reason, done.completion_tokens) == ("length", 5)
    assert text.startswith('{"nam')


async def test_one_schema_beside_another_and_beside_none(backend: Qwen2Backend) -> None:
    """Rows of one batch: each keeps to its own."""
    schemas: list[dict[str, Any]] = [{"enum": ["yes", "no"]}, {"type": "integer", "minimum": 3, "maximum": 7}]
    requests = [*(asking(json_schema=json.dumps(schema)) for schema in schemas), asking(max_tokens=20)]
    first, second, free = await asyncio.gather(*(answer(backend, request) for request in requests))
    assert json.loads(first[0]) in ("yes", "no")
    assert 3 <= json.loads(second[0]) <= 7
    assert free[2].completion_tokens > 0


@pytest.mark.parametrize(
    "schema",
    [
        '{"type": "nothing"}',
        "{",
        "3",
        '{"$ref": "http://example.com/schema.json"}',
        '{"$ref": "#"}',
        '{"type": "string", "pattern": "("}',
        '{"type": "array", "items": ' * 20_000,
        json.dumps({"allOf": [{"anyOf": [{"properties": {f"{i}{j}": {}}} for j in range(5)]} for i in range(12)]}),
        json.dumps({"properties": {f"k{i}": {"type": "string"} for i in range(2500)}, "type": "object"}),
        json.dumps({"description": "x" * LONGEST}),
    ],
    ids=lambda schema: schema[:40],
)
async def test_a_bad_or_costly_schema_is_refused_in_bounded_time(backend: Qwen2Backend, schema: str) -> None:
    began = time.process_time()
    with pytest.raises(InvalidRequest, match="cannot be kept to this schema") as refused:
        await asyncio.to_thread(backend.check, asking(json_schema=schema))
    assert refused.value.param == "response_format"
    assert time.process_time() - began < 20  # of computing, not of the clock: hostile ones must not take for ever


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(.*a.{200})$", "(a{1,1000}){1,1000}b"])
async def test_a_costly_pattern_holds_nobody_up(backend: Qwen2Backend, pattern: str) -> None:
    schema = json.dumps({"type": "string", "pattern": pattern})
    hostile = answer(backend, asking(json_schema=schema, max_tokens=50))
    async with asyncio.timeout(60):
        _, other = await asyncio.gather(hostile, answer(backend, asking(max_tokens=10)))
    assert other[2].completion_tokens > 0


async def test_logprobs_add_up_and_name_the_chosen(backend: Qwen2Backend) -> None:
    _, deltas, done = await answer(backend, asking(temperature=0, logprobs=3, max_tokens=12))
    told = [logprob for delta in deltas for logprob in delta.logprobs]
    assert len(told) == done.completion_tokens == 12
    for one in told:
        assert one.logprob <= 0
        assert len(one.top) == 3
        assert sorted((p for _, p in one.top), reverse=True) == [p for _, p in one.top]
        assert sum(math.exp(p) for _, p in one.top) <= 1.0001


async def test_a_text_is_continued_as_it_is(backend: Qwen2Backend) -> None:
    """No template: the prompt has the text's own tokens, and control tokens in it stay text."""
    text = "hello world"
    tokens = backend.tokenize([Message("text", text)])
    assert backend.detokenize(tokens) == text
    assert len(backend.tokenize([Message("user", text)])) > len(tokens)
    *_, done = await answer(backend, asking(text, role="text", max_tokens=3))
    assert done.prompt_tokens == len(tokens)
    with pytest.raises(InvalidRequest, match="tokens are numbers from 0"):
        backend.detokenize([10**6])
