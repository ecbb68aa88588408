"""The openai client against the real server: what programs of the organisation will do."""

from collections.abc import Iterator

import httpx
import openai
import pytest

from tests.server import API_KEY, RunningServer, eventually, running_server

LONG = "long answer, please"  # the scripted backend's answer of 2000 words


@pytest.fixture
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with asking(server) as client:
        yield client


def asking(server: RunningServer, key: str = API_KEY) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0, timeout=30)


def user(text: str) -> list[openai.types.chat.ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def test_an_answer_comes_whole(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="scripted", messages=user("hello there"))
    assert answer.choices[0].message.content == "You said: hello there"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "scripted"
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 4


def test_an_answer_comes_in_pieces(client: openai.OpenAI) -> None:
    chunks = list(client.chat.completions.create(model="default", messages=user("hello there"), stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "You said: hello there"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["stop"]
    assert chunks[-1].choices[0].delta.content is None
    assert len({chunk.id for chunk in chunks}) == 1
    assert all(chunk.usage is None for chunk in chunks)


def test_usage_comes_in_one_last_chunk_when_asked_for(client: openai.OpenAI) -> None:
    wanted: openai.types.chat.ChatCompletionStreamOptionsParam = {"include_usage": True}
    stream = client.chat.completions.create(model="default", messages=user("hello"), stream=True, stream_options=wanted)
    *before, last = list(stream)
    assert all(chunk.usage is None and chunk.choices for chunk in before)
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.completion_tokens == 3
    assert last.usage.total_tokens == last.usage.prompt_tokens + 3


def test_max_tokens_ends_with_length(client: openai.OpenAI) -> None:
    for limit in ({"max_tokens": 2}, {"max_completion_tokens": 2}):
        answer = client.chat.completions.create(model="default", messages=user("hello"), extra_body=limit)
        assert answer.choices[0].message.content == "You said:"
        assert answer.choices[0].finish_reason == "length"


def test_a_stop_string_may_be_one_or_a_list(client: openai.OpenAI) -> None:
    for stop in (" hello", [" hello"]):
        answer = client.chat.completions.create(model="default", messages=user("oh hello you"), stop=stop)
        assert answer.choices[0].message.content == "You said: oh"


def test_text_parts_are_joined(client: openai.OpenAI) -> None:
    parts: list[openai.types.chat.ChatCompletionContentPartTextParam] = [
        {"type": "text", "text": "one "},
        {"type": "text", "text": "two"},
    ]
    answer = client.chat.completions.create(model="default", messages=[{"role": "user", "content": parts}])
    assert answer.choices[0].message.content == "You said: one two"


def test_the_model_is_listed_with_the_reason(client: openai.OpenAI) -> None:
    models = client.models.list().data
    assert [model.id for model in models] == ["scripted"]
    assert models[0].model_extra is not None
    assert models[0].model_extra["reason"] == "A script plays the model."
    assert client.models.retrieve("scripted").id == "scripted"


def test_a_wrong_key_is_an_authentication_error(server: RunningServer) -> None:
    with asking(server, "sk-qdesk-wrong") as client, pytest.raises(openai.AuthenticationError) as refused:
        client.chat.completions.create(model="default", messages=user("hello"))
    assert refused.value.code == "invalid_api_key"


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="Running: scripted") as refused:
        client.chat.completions.create(model="gpt-4o", messages=user("hello"))
    assert refused.value.code == "model_not_found"


def test_bad_input_is_a_bad_request_that_names_the_part(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="default", messages=user("hello"), temperature=3)
    assert refused.value.param == "temperature"


def test_a_failure_of_the_engine_is_a_server_error(client: openai.OpenAI) -> None:
    with pytest.raises(openai.InternalServerError) as failed:
        client.chat.completions.create(model="default", messages=user("fail before"))
    assert failed.value.code == "engine_error"


def test_a_failure_in_the_middle_of_a_stream_is_an_error_event(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(model="default", messages=user("fail midway"), stream=True)
    seen = [next(stream).choices[0].delta.content or "" for _ in range(5)]
    assert "".join(seen) == "This answer breaks off"
    with pytest.raises(openai.APIError, match="fail midway"):
        next(stream)


def test_a_full_queue_is_503_with_retry_after() -> None:
    with (
        running_server(max_concurrent_requests=1, max_waiting_requests=0) as server,
        asking(server) as client,
        client.chat.completions.create(model="default", messages=user(LONG), stream=True) as running,
    ):
        next(iter(running))
        with pytest.raises(openai.InternalServerError) as refused:
            client.chat.completions.create(model="default", messages=user("hello"))
        assert refused.value.status_code == 503
        assert refused.value.code == "queue_full"
        assert int(refused.value.response.headers["retry-after"]) >= 1
        assert httpx.get(server.url + "/readyz").json()["busy"] is True
        assert httpx.get(server.url + "/readyz").status_code == 200


def test_whoever_goes_away_frees_the_place_at_once() -> None:
    """Streaming, waiting and without a stream: the row says disconnected, and the next one is answered."""
    with running_server(max_concurrent_requests=1, max_waiting_requests=5) as server, asking(server) as client:
        running = client.chat.completions.create(model="default", messages=user(LONG), stream=True)
        running_id = next(iter(running)).id.removeprefix("chatcmpl-")
        with pytest.raises(openai.APITimeoutError):  # this one leaves the line
            client.with_options(timeout=0.5).chat.completions.create(model="default", messages=user("waiting"))
        running.close()
        eventually(lambda: server.status_of(running_id) == "disconnected")
        with pytest.raises(openai.APITimeoutError):  # this one runs, and is not streamed
            client.with_options(timeout=0.5).chat.completions.create(model="default", messages=user(LONG))
        answer = client.chat.completions.create(model="default", messages=user("still there?"))
        assert answer.choices[0].message.content == "You said: still there?"
        statuses = server.rows("select status from exchanges order by queued_at")
        assert statuses == [("disconnected",), ("disconnected",), ("disconnected",), ("done",)]


def test_a_stream_tells_the_place_in_the_line_in_comments() -> None:
    question = {"messages": user("next"), "stream": True}
    with (
        running_server(max_concurrent_requests=1) as server,
        asking(server) as client,
        client.chat.completions.create(model="default", messages=user(LONG), stream=True) as running,
    ):
        next(iter(running))
        url, headers = f"{server.url}/v1/chat/completions", {"Authorization": f"Bearer {API_KEY}"}
        with httpx.stream("POST", url, json=question, headers=headers) as waiting:
            assert waiting.headers["content-type"].startswith("text/event-stream")
            assert waiting.headers["x-accel-buffering"] == "no"
            assert next(waiting.iter_lines()).startswith(": waiting, position 1")
