"""The remote backend against servers that answer well, badly, late, and not at all."""

import asyncio
import json
import time
from dataclasses import replace

import pytest

from engine.backends.openai_wire import EXTRAS, GO_ON_WORDS
from engine.backends.remote import RemoteBackend
from engine.errors import BackendFailed, EngineError, InvalidRequest, NotReady, QueueFull
from engine.settings import Settings
from engine.types import ChatRequest, Delta, Done, Message, Sampling
from tests.engine.backends.test_contract import ask, collect, first_delta, silent, text_of
from tests.engine.backends.upstream import HANGS, Canned, Upstream, canned, delta, reply, stream_of, upstream

QWEN2_COUNTS = {
    "The committee will meet on Thursday afternoon to discuss the annual budget.": 13,
    "今天下午三点我们在会议室讨论明年的预算安排，请大家准时参加。": 15,
    "Call 13800138000 before 2026-11-29, room 4021.": 33,
    "for i in range(10):\n    total += values[i] ** 2  # squares": 20,
    "🙂🚀👩\u200d👩\u200d👧\u200d👦": 12,
    "Ünïcödé naïve café señor": 10,
    "日本語のテキストと한국어 텍스트": 13,
}
MODELS = reply(json.dumps({"data": [{"id": "one"}, {"id": "two"}]}))
WHOLE = stream_of(delta("Hello", "stop"), "[DONE]")


async def started(url: str, **settings: str) -> RemoteBackend:
    backend = RemoteBackend(Settings.model_validate({"backend": "remote", "openai_base_url": url, **settings}))
    await backend.start(silent)
    return backend


async def test_the_request_goes_over_whole() -> None:
    async with upstream() as server:
        backend = await started(server.url)
        request = ask("Hello")
        await collect(backend.stream(request))
        assert server.bodies == [
            {
                "model": "scripted",
                "messages": [{"role": "user", "content": "Hello"}],
                "stream": True,
                "stream_options": {"include_usage": True},
                "temperature": 0,
                "top_p": request.sampling.top_p,
                "top_k": request.sampling.top_k,
                "repetition_penalty": request.sampling.repetition_penalty,
                "max_tokens": 8,
            }
        ]
        assert backend.context_tokens == 2048  # the server's own limit, which is below the setting
        await backend.stop()


async def test_the_key_is_sent_and_the_first_model_taken() -> None:
    async with canned(MODELS, WHOLE) as server:
        backend = await started(server.url, openai_api_key="sk-secret")
        await collect(backend.stream(ask("Hello")))
        assert backend.model == "one"
        assert all(b"authorization: bearer sk-secret" in request.lower() for request in server.requests)
        await backend.stop()


async def test_no_answers_cookie_is_sent_with_the_next_question() -> None:
    sets = WHOLE.replace(b"\r\n\r\n", b"\r\nset-cookie: who=ada; path=/\r\n\r\n", 1)
    async with canned(MODELS, sets, WHOLE) as server:
        backend = await started(server.url)
        for _ in range(2):
            await collect(backend.stream(ask("Hello")))
        assert len(server.requests) == 3
        assert not any(b"cookie:" in request.lower() for request in server.requests)
        await backend.stop()


async def test_usage_is_the_servers_own_count() -> None:
    usage = {"prompt_tokens": 12, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 4}}
    async with canned(MODELS, stream_of(delta("Hi", "length"), {"choices": [], "usage": usage}, "[DONE]")) as server:
        backend = await started(server.url)
        assert (await collect(backend.stream(ask("Hello"))))[-1] == Done("length", 12, 7, 4)
        await backend.stop()


async def test_text_may_hold_what_some_take_for_line_ends() -> None:
    odd = "a\u2028b\u2029c\x85d\x0be 你好 🙂"
    async with canned(MODELS, stream_of(delta(odd, "stop"), "[DONE]")) as server:
        backend = await started(server.url)
        assert text_of(await collect(backend.stream(ask("Hello")))) == odd
        await backend.stop()


async def test_a_connection_that_breaks_before_the_first_token_is_tried_again() -> None:
    async with canned(MODELS, b"", b"", WHOLE) as server:
        backend = await started(server.url)
        assert text_of(await collect(backend.stream(ask("Hello")))) == "Hello"
        assert len(server.requests) == 4
        await backend.stop()


async def test_three_broken_connections_are_an_error_and_the_server_is_asked_again_later() -> None:
    async with canned(MODELS) as server:
        backend = await started(server.url)
        with pytest.raises(BackendFailed, match="connection to the other server failed"):
            await collect(backend.stream(ask("Hello")))
        assert len(server.requests) == 4
        assert "cannot be reached" in str(backend.health())
        await backend.stop()


async def test_an_answer_that_breaks_off_is_an_error_and_is_not_begun_again() -> None:
    for broken in (stream_of(delta("Hel")), stream_of(delta("Hel"), "[DONE]"), stream_of(delta("Hel"), "{oops")):
        async with canned(MODELS, broken, WHOLE) as server:
            backend = await started(server.url)
            stream = backend.stream(ask("Hello"))
            assert await first_delta(stream) == Delta("Hel")
            with pytest.raises(BackendFailed, match=r"broke the answer off|no JSON"):
                await collect(stream)
            assert len(server.requests) == 2
            await backend.stop()


async def test_an_error_in_the_stream_is_passed_on() -> None:
    for error in ({"message": "out of memory", "code": 500}, "out of memory"):
        async with canned(MODELS, stream_of(delta("Hel"), {"error": error})) as server:
            backend = await started(server.url)
            with pytest.raises(BackendFailed, match=r"^The other server failed: out of memory$"):
                await collect(backend.stream(ask("Hello")))
            await backend.stop()


@pytest.mark.parametrize(
    ("status", "body", "kind", "says"),
    [
        ("429 Too Many Requests", "", QueueFull, "The other server is busy; try again later."),
        ("503 Service Unavailable", "<html>", QueueFull, "The other server is busy; try again later."),
        ("401 Unauthorized", "", BackendFailed, "must check QDESK_OPENAI_API_KEY"),
        ("400 Bad Request", '{"error": {"message": "too long"}}', InvalidRequest, "refuses the request: too long"),
        ("422 Unprocessable", '{"detail": "max_tokens"}', InvalidRequest, "refuses the request: max_tokens"),
        ("500 Internal Server Error", "boom", BackendFailed, "status 500: boom"),
        ("404 Not Found", '{"object": "error", "message": "no"}', BackendFailed, "status 404: no"),
    ],
)
async def test_bad_answers_are_sentences(status: str, body: str, kind: type[EngineError], says: str) -> None:
    async with canned(MODELS, reply(body, status, "Retry-After: 7\r\n")) as server:
        backend = await started(server.url)
        with pytest.raises(kind, match=says) as refused:
            await collect(backend.stream(ask("Hello")))
        assert refused.value.retry_after_s == (7 if kind is QueueFull else None)
        assert backend.health() is None  # it is there
        await backend.stop()


async def test_a_server_that_says_nothing_more_is_given_up_and_not_taken_for_gone() -> None:
    begun = stream_of(delta("Hel")) + HANGS
    async with canned(MODELS, HANGS, begun, WHOLE) as server:
        backend = await started(server.url, request_timeout_s="0.2")
        stream = backend.stream(ask("Hello"))
        with pytest.raises(BackendFailed, match="has said nothing for too long"):
            await collect(stream)
        stream = backend.stream(ask("Hello"))
        assert await first_delta(stream) == Delta("Hel")
        with pytest.raises(BackendFailed, match="has said nothing for too long"):
            await collect(stream)
        assert len(server.requests) == 3, "a question that may be under way is not asked again"
        assert backend.health() is None
        assert text_of(await collect(backend.stream(ask("Hello")))) == "Hello"
        await backend.stop()


async def test_answers_that_follow_one_another_use_one_connection() -> None:
    async with upstream() as server:
        backend = await started(server.url)
        for _ in range(3):
            await collect(backend.stream(ask("Hello")))
        assert (len(server.bodies), len(server.connections)) == (3, 1)
        await backend.stop()


async def test_text_generation_inference_is_understood() -> None:
    """TGI's own ways: no space after "data:", roles in each piece, other finish reasons, no [DONE], errors as text."""

    def answer(*chunks: object) -> bytes:
        lines = "".join(f"data:{json.dumps(chunk)}\n\n" for chunk in chunks)
        return reply(lines, headers="content-type: text/event-stream\r\n")

    def piece(text: str, finish_reason: str | None = None) -> dict[str, object]:
        choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "logprobs": None}
        return {"id": "", "object": "chat.completion.chunk", "choices": [{**choice, "finish_reason": finish_reason}]}

    whole = answer(piece("Hel"), piece("lo", "eos_token"))
    cut_off = answer(piece("Hel", "length"))
    failed = answer(piece("Hel"), {"error": "Request failed during generation", "error_type": "generation"})
    full = reply('{"error": "Model is overloaded", "error_type": "overloaded"}', "429 Too Many Requests")
    invalid = reply('{"error": "Input validation error: too long", "error_type": "validation"}', "422 Unprocessable")
    narrow = reply('{"error": "Input validation error: `top_p` must be > 0.0 and < 1.0"}', "422 Unprocessable")
    async with canned(MODELS, whole, cut_off, failed, full, invalid, narrow, whole, whole) as server:
        backend = await started(server.url)
        assert text_of(events := await collect(backend.stream(ask("Hello")))) == "Hello"
        assert events[-1] == Done("stop", backend.count_tokens(ask("Hello").messages), 2, 0)
        last = (await collect(backend.stream(ask("Hello"))))[-1]
        assert isinstance(last, Done)
        assert last.finish_reason == "length"
        for error, says in (
            (BackendFailed, "^The other server failed: Request failed during generation$"),
            (QueueFull, "is busy"),
            (InvalidRequest, "refuses the request: Input validation error: too long"),
        ):
            with pytest.raises(error, match=says):
                await collect(backend.stream(ask("Hello")))
        all_of_them = replace(ask("Hello"), sampling=Sampling(top_p=1.0))
        for _ in range(2):
            assert text_of(await collect(backend.stream(all_of_them))) == "Hello"
        assert [b'"top_p"' in request for request in server.requests[-3:]] == [True, False, False]
        await backend.stop()


async def test_a_server_that_knows_openais_fields_alone_gets_no_others() -> None:
    strict = reply('{"error": {"message": "Unrecognized request argument supplied: top_k"}}', "400 Bad Request")
    async with canned(MODELS, strict, WHOLE, WHOLE) as server:
        backend = await started(server.url)
        for _ in range(2):
            assert text_of(await collect(backend.stream(ask("Hello")))) == "Hello"
        assert all(name.encode() not in request for name in EXTRAS for request in server.requests[2:])
        await backend.stop()


async def test_a_cut_off_answer_is_gone_on_with_as_the_server_can() -> None:
    """vLLM's fields where they are taken; elsewhere one more message of the person's asks for it."""
    question = (Message("user", "Greet me"), Message("assistant", "Hel"))
    request = ChatRequest(messages=question, person=None, source="api")
    strict = reply('{"error": {"message": "Unrecognized argument: continue_final_message"}}', "400 Bad Request")
    async with canned(MODELS, WHOLE, strict, WHOLE) as server:
        backend = await started(server.url)
        for _ in range(2):
            await collect(backend.stream(request))
        await backend.stop()
    taken, refused, plain = server.requests[1:4]
    assert b'"continue_final_message":true' in taken
    assert b'"add_generation_prompt":false' in taken
    assert taken.endswith(refused.partition(b"\r\n\r\n")[2])
    assert b"continue_final_message" not in plain
    assert GO_ON_WORDS.encode() in plain


async def test_a_server_that_is_not_up_yet_is_waited_for() -> None:
    async with canned(b"", MODELS, WHOLE) as server:
        backend = RemoteBackend(Settings(backend="remote", openai_base_url=server.url), ask_again_s=0)
        await backend.start(silent)
        assert "cannot be reached" in backend.reason
        async with asyncio.timeout(10):
            while backend.health():  # noqa: ASYNC110 (each look asks again, and nothing else does)
                await asyncio.sleep(0)
        assert backend.reason == f"Answers come from the server at {server.url}."
        assert text_of(await collect(backend.stream(ask("Hello")))) == "Hello"
        await backend.stop()


def several(*servers: Canned | Upstream) -> str:
    return " , ".join(server.url for server in servers)


async def test_of_several_servers_the_one_with_the_fewest_open_answers_is_asked() -> None:
    async with upstream() as one, upstream() as other:
        backend = await started(several(one, other))
        assert backend.reason == f"Answers come from the servers at {one.url} and {other.url}."
        streams = [backend.stream(ask("long", 1000)) for _ in range(4)]
        for stream in streams:
            await first_delta(stream)
        assert [len(server.bodies) for server in (one, other)] == [2, 2]
        for stream in streams[1::2]:  # of the second server
            await stream.aclose()
        await collect(backend.stream(ask("Hello")))
        assert len(other.bodies) == 3
        for stream in streams:
            await stream.aclose()
        await backend.stop()


async def test_a_server_that_dies_is_left_out_and_comes_back() -> None:
    async with canned(MODELS) as dies, upstream() as stays:
        backend = RemoteBackend(Settings(backend="remote", openai_base_url=several(dies, stays)), ask_again_s=0)
        await backend.start(silent)
        assert text_of(await collect(backend.stream(ask("Hello")))) == "You said: Hello"
        asked = len(dies.requests)
        assert asked == 2, "it was tried first, and broke off"
        await collect(backend.stream(ask("Hello")))
        assert len(dies.requests) == asked, "nothing is sent to it while it is gone"
        assert backend.health() is None, "one that answers is enough"
        dies.answers += [MODELS, WHOLE]
        async with asyncio.timeout(10):
            while dies.url not in backend.reason:
                assert backend.health() is None  # each look asks again
                await asyncio.sleep(0)
        assert text_of(await collect(backend.stream(ask("Hello")))) == "Hello"
        await backend.stop()


async def test_a_full_server_passes_the_question_on_and_all_of_them_full_is_full() -> None:
    full = reply("", "429 Too Many Requests")
    async with canned(MODELS, full, full) as one, canned(MODELS, WHOLE, full) as other:
        backend = await started(several(one, other))
        assert text_of(await collect(backend.stream(ask("Hello")))) == "Hello"
        with pytest.raises(QueueFull):
            await collect(backend.stream(ask("Hello")))
        assert [len(server.requests) for server in (one, other)] == [3, 3]
        await backend.stop()


async def test_an_answer_that_has_begun_is_never_begun_again_elsewhere() -> None:
    async with canned(MODELS, stream_of(delta("Hel"))) as breaks, upstream() as other:
        backend = await started(several(breaks, other))
        with pytest.raises(BackendFailed):
            await collect(backend.stream(ask("Hello")))
        assert other.bodies == []
        await backend.stop()


async def test_stopping_ends_what_is_open() -> None:
    async with upstream() as server:
        backend = await started(server.url)
        stream = backend.stream(ask("long", 1000))
        await first_delta(stream)
        server.script.hold()
        waiting = asyncio.create_task(collect(stream))
        await asyncio.sleep(0)  # it waits for the next token
        await backend.stop()
        with pytest.raises(BackendFailed):
            await waiting
        async with asyncio.timeout(1):
            await server.idle.wait()
        with pytest.raises(BackendFailed):
            await collect(backend.stream(ask("Hello")))


@pytest.mark.parametrize(
    ("answer", "model", "says"),
    [
        (reply("", "401 Unauthorized"), "auto", "refuses the key; check QDESK_OPENAI_API_KEY"),
        (MODELS, "three", "has no model three; set QDESK_MODEL to one of: one, two"),
        (reply("<html>", "404 Not Found"), "auto", "lists no model .* check QDESK_OPENAI_BASE_URL"),
    ],
)
async def test_what_a_person_must_put_right_stops_the_start(answer: bytes, model: str, says: str) -> None:
    async with canned(answer) as server:
        with pytest.raises(NotReady, match=says):
            await started(server.url, model=model)


def test_the_estimate_of_tokens_errs_on_the_high_side() -> None:
    """Counts of Qwen2's own tokenizer for these texts, without the chat template's frame."""
    backend = RemoteBackend(Settings(backend="remote", openai_base_url="http://127.0.0.1:9/v1"))
    frame = backend.count_tokens([Message("user", "")])
    for text, tokens in QWEN2_COUNTS.items():
        estimate = backend.count_tokens([Message("user", text)]) - frame
        assert tokens <= estimate <= 3 * tokens, text


@pytest.mark.parametrize("text", ["word ", "好", "🙂", "\n7"])
def test_of_a_text_that_is_far_too_long_only_the_beginning_is_read(text: str) -> None:
    """And what is cut into pieces to be read has as many tokens as before."""
    backend = RemoteBackend(
        Settings(backend="remote", openai_base_url="http://127.0.0.1:9/v1", max_context_tokens=4096)
    )
    few, many = text * 30_000, text * (4_000_000 // len(text))
    frame, one = backend.count_tokens([Message("user", "")]), backend.count_tokens([Message("user", text * 1000)])
    began = time.thread_time()
    for _ in range(10):
        estimate = backend.count_tokens([Message("system", few), Message("user", many)])
    assert time.thread_time() - began < 0.5
    exactly = (one - frame) * (len(few) + len(many)) / len(text * 1000)
    assert estimate == pytest.approx(exactly, rel=0.01)
    assert backend.count_tokens([Message("user", text)] * 10_000) > 80_000, "a frame for each"
