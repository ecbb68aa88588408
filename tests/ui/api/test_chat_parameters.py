"""What a chat completion may ask for beside messages: choices, logprobs, metadata, request ids, idempotency keys."""

import json
from collections.abc import Iterator

import httpx
import openai
import pytest

from tests.server import API_KEY, RunningServer, bearer, eventually, key_of, running_server

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=API_KEY, max_retries=0, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def ada(server: RunningServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers=bearer(key_of("ada")), timeout=60) as program:
        yield program


def user(text: str) -> list[openai.types.chat.ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def hello(text: str = "hello", **values: object) -> dict[str, object]:
    return {"messages": user(text), **values}


def test_several_choices_are_as_many_exchanges(client: openai.OpenAI, server: RunningServer) -> None:
    answer = client.chat.completions.create(model="default", messages=user("three of them"), n=3, seed=5)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert {choice.message.content for choice in answer.choices} == {"You said: three of them"}
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (8, 15)
    rows = server.rows("select id, json_extract(sampling, '$.seed') from exchanges where prompt = 'three of them'")
    assert {seed for _, seed in rows} == {5, 6, 7}
    assert answer.id.removeprefix("chatcmpl-") in {id for id, _ in rows}


def test_what_a_program_asks_for_reaches_the_engine(client: openai.OpenAI, server: RunningServer) -> None:
    values: dict[str, object] = {"top_k": 7, "repetition_penalty": 1.25}
    client.chat.completions.create(
        model="default", messages=user("as I say"), temperature=0.25, top_p=0.5, seed=3, stop=["x", "好"], max_tokens=9,
        frequency_penalty=0.5, presence_penalty=-0.25, extra_body=values,
    )  # fmt: skip
    ((kept,),) = server.rows("select sampling from exchanges where prompt = 'as I say'")
    values |= {"frequency_penalty": 0.5, "presence_penalty": -0.25}
    asked = {**values, "temperature": 0.25, "top_p": 0.5, "seed": 3, "stop": ["x", "好"], "max_tokens": 9}
    assert asked.items() <= json.loads(kept).items()


def test_choices_stream_side_by_side_and_end_once(client: openai.OpenAI) -> None:
    wanted: openai.types.chat.ChatCompletionStreamOptionsParam = {"include_usage": True}
    stream = client.chat.completions.create(
        model="default", messages=user("both"), n=2, stream=True, stream_options=wanted
    )
    *chunks, last = list(stream)
    texts = {0: "", 1: ""}
    for chunk in chunks:
        texts[chunk.choices[0].index] += chunk.choices[0].delta.content or ""
    assert texts == {0: "You said: both", 1: "You said: both"}
    assert len([chunk for chunk in chunks if chunk.choices[0].finish_reason]) == 2
    assert len({chunk.id for chunk in chunks}) == 1
    assert last.usage is not None
    assert last.usage.completion_tokens == 6


def test_more_choices_than_one_person_may_have_start_none_of_them(ada: httpx.Client, server: RunningServer) -> None:
    refused = ada.post(CHAT, json=hello("too many at once", n=4))
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "user_limit")
    assert not server.rows("select 1 from exchanges where prompt = 'too many at once'")
    assert ada.post(CHAT, json=hello("not too many", n=3)).status_code == 200


def test_logprobs_come_whole_and_in_pieces(client: openai.OpenAI) -> None:
    whole = client.chat.completions.create(model="default", messages=user("x"), logprobs=True, top_logprobs=2)
    told = whole.choices[0].logprobs
    assert told is not None
    assert told.content is not None
    assert [one.token for one in told.content] == ["You", " said:", " x"]
    assert bytes(told.content[1].bytes or ()).decode() == " said:"
    assert told.content[0].top_logprobs[0].logprob == 0.0
    stream = client.chat.completions.create(model="default", messages=user("x"), logprobs=True, stream=True)
    pieces = [chunk.choices[0].logprobs for chunk in stream]
    assert "".join(one.token for piece in pieces if piece and piece.content for one in piece.content) == "You said: x"


def test_user_and_metadata_are_kept_with_the_exchange(client: openai.OpenAI, server: RunningServer) -> None:
    answer = client.chat.completions.create(
        model="default", messages=user("keep this"), user="customer-7", metadata={"ticket": "A-1", "部门": "财务"}
    )
    id = answer.id.removeprefix("chatcmpl-")
    sql = "select end_user, json_extract(request_metadata, '$.ticket'), request_metadata from exchanges where id = ?"
    assert server.rows(sql, id) == [("customer-7", "A-1", '{"ticket": "A-1", "部门": "财务"}')]


@pytest.mark.parametrize("given", ["a", "req-7f3e.A_1", "x" * 64])
def test_a_request_id_comes_back_and_is_logged_with_ours(ada: httpx.Client, server: RunningServer, given: str) -> None:
    answer = ada.post(CHAT, json=hello(), headers={"x-request-id": given})
    assert answer.headers["x-request-id"] == given
    id = answer.json()["id"].removeprefix("chatcmpl-")
    assert server.status_of(id) == "done"
    eventually(lambda: any(id in line and f" as {given}" in line for line in server.output().splitlines()))


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\tb", "<script>", "é", '{"a"}'])
def test_a_request_id_that_is_none_is_replaced(ada: httpx.Client, given: str) -> None:
    answer = ada.get("/v1/models", headers=[(b"x-request-id", given.encode())])
    assert len(answer.headers["x-request-id"]) == 32


def test_the_same_request_id_twice_is_two_exchanges(ada: httpx.Client) -> None:
    """A program cannot reach another's exchange by naming its id."""
    ids = {ada.post(CHAT, json=hello(), headers={"x-request-id": "same"}).json()["id"] for _ in range(2)}
    assert len(ids) == 2


def test_an_idempotency_key_gives_the_same_exchange_once(ada: httpx.Client, server: RunningServer) -> None:
    key = {"Idempotency-Key": "order-1"}
    first = ada.post(CHAT, json=hello("only once"), headers=key)
    again = ada.post(CHAT, json=hello("only once"), headers=key)
    assert again.status_code == 200
    assert again.json() == first.json()
    assert server.rows("select count(*) from exchanges where prompt = 'only once'") == [(1,)]


def test_a_key_with_another_body_is_422_and_another_accounts_key_is_its_own(
    ada: httpx.Client, server: RunningServer
) -> None:
    key = {"Idempotency-Key": "order-2"}
    mine = ada.post(CHAT, json=hello("mine"), headers=key).json()
    refused = ada.post(CHAT, json=hello("something else"), headers=key)
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "idempotency_key_reused")
    bobs = httpx.post(server.url + CHAT, json=hello("mine"), headers={**bearer(key_of("bob")), **key}, timeout=60)
    assert bobs.json()["id"] != mine["id"]
    bad = ada.post(CHAT, json=hello(), headers={"Idempotency-Key": "x" * 256})
    assert (bad.status_code, bad.json()["error"]["param"]) == (400, "Idempotency-Key")


def test_a_failed_answer_is_told_again_as_it_failed(ada: httpx.Client, server: RunningServer) -> None:
    key = {"Idempotency-Key": "order-3"}
    answers = [ada.post(CHAT, json=hello("fail before, once"), headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [500, 500]
    assert answers[0].json() == answers[1].json()
    assert server.rows("select count(*) from exchanges where prompt = 'fail before, once'") == [(1,)]


def test_whoever_lost_the_connection_asks_again_and_misses_nothing(ada: httpx.Client, server: RunningServer) -> None:
    """The answer goes on without its program, which follows it from the beginning when it is back."""
    key, question = {"Idempotency-Key": "order-4"}, hello("long, and the line drops", stream=True, max_tokens=60)
    with ada.stream("POST", CHAT, json=question, headers=key) as dropped:
        next(line for line in dropped.iter_lines() if "word0" in line)  # and is closed here
    with ada.stream("POST", CHAT, json=question, headers=key) as again:
        text = "".join(again.iter_text())
    assert '"content":"word0"' in text
    assert '" word59"' in text
    assert text.endswith("data: [DONE]\n\n")
    rows = server.rows("select status from exchanges where prompt = 'long, and the line drops'")
    assert rows == [("done",)]


def test_more_calls_than_the_rate_limit_are_429_for_that_account_alone() -> None:
    with running_server(accounts={"ada": "staff", "bob": "staff"}, api_rate_limit="3/hour") as server:

        def ask(key: str) -> httpx.Response:
            return httpx.post(server.url + CHAT, json=hello(), headers=bearer(key), timeout=60)

        assert [ask(key_of("ada")).status_code for _ in range(4)] == [200, 200, 200, 429]
        refused = ask(key_of("ada"))
        assert refused.json()["error"]["code"] == "rate_limit"
        assert 1 <= int(refused.headers["retry-after"]) <= 3600
        simple = httpx.post(server.url, json={"prompt": "hello"}, headers=bearer(key_of("ada")))
        assert (simple.status_code, simple.json()["status"]) == (429, 429)
        assert ask(key_of("bob")).status_code == 200
        assert [ask(API_KEY).status_code for _ in range(4)] == [200] * 4  # the operator's own
