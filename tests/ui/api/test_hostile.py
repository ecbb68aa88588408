"""What careless and hostile programs send: nothing becomes a 500 or a stack trace, and no place stays taken."""

import json
import random
import re
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.server import RunningServer, bearer, eventually, key_of, running_server
from ui.auth import RECHECK_S

CHAT, PLAIN, TOKENS = "/v1/chat/completions", "/v1/completions", "/v1/tokenize"
LARGE = 3_900_000  # bytes: just less than a body may have
MIB = 1 << 20


def many(item: str, count: int = 0) -> str:
    """A list of so many of these, or of as many as there is room for."""
    return f"[{','.join([item] * (count or LARGE // (len(item) + 1)))}]"


def chat(content: str, **more: str) -> str:
    """A body of one message; all values are JSON."""
    fields = {"messages": f'[{{"role": "user", "content": {content}}}]', **more}
    return "{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}"


def gigantic() -> dict[str, tuple[str, str, int, str]]:
    """By what it is: path, body, the status of its answer, and what that names."""
    han = "".join(map(chr, random.Random(7).choices(range(0x4E00, 0x9FA5), k=LARGE // 3)))
    pairs = {
        "metadata": json.dumps(dict.fromkeys(range(300_000), 0)),
        "logit_bias": json.dumps(dict.fromkeys(range(200_000), "a")),
    }
    limits = {"n": "8", "max_tokens": str(2**63), "logprobs": "true", "top_logprobs": "20", "stop": many('"word9"', 8)}
    message, part = '{"role": "user", "content": "a"}', '{"type": "text", "text": "a"}'
    return {
        "emoji": (CHAT, chat(f'"{"😀" * (LARGE // 4)}"'), 200, ""),
        "Han": (CHAT, chat(f'"{han}"'), 400, "messages"),
        "Han, eight times": (CHAT, chat(f'"{han}"', n="8"), 400, "messages"),
        "Han to be counted": (TOKENS, f'{{"prompt": "{han}"}}', 400, "prompt"),
        "messages": (CHAT, f'{{"messages": {many(message, 10_001)}}}', 400, "messages"),
        "parts": (CHAT, chat(many(part)), 413, "None"),
        "as many parts as may be": (CHAT, chat(many(part, 99_990)), 200, ""),
        "no parts": (CHAT, chat(many("{}", 99_990)), 400, "messages[0].content"),
        "no messages": (CHAT, f'{{"messages": {many("{}", 99_990)}}}', 400, "messages[0].role"),
        "numbers to stop at": (CHAT, chat('"a"', stop=many("1")), 400, "stop"),
        "long texts to stop at": (CHAT, chat('"a"', stop=many(f'"{"b" * 480_000}"')), 400, "stop"),
        "metadata": (CHAT, chat('"a"', metadata=pairs["metadata"]), 400, "metadata"),
        "logit_bias": (CHAT, chat('"a"', logit_bias=pairs["logit_bias"]), 400, "logit_bias"),
        "numbers for prompts": (PLAIN, f'{{"prompt": {many("1")}}}', 400, "prompt"),
        "no tokens": ("/v1/detokenize", f'{{"tokens": {many("null")}}}', 400, "tokens[0]"),
        "lists of nothing": (CHAT, chat('"a"', tools=many("[]")), 413, "None"),
        "the most of all": (CHAT, chat('"long"', **limits), 200, ""),
    }


@pytest.mark.parametrize("field", ["max_tokens", "top_k", "seed", "n", "temperature"])
def test_a_number_beyond_all_bounds_is_no_failure(server: RunningServer, field: str) -> None:
    body = f'{{"messages": [{{"role": "user", "content": "hi"}}], "{field}": {"9" * 400}}}'
    answer = httpx.post(server.url + CHAT, content=body, headers=bearer())
    assert answer.status_code == (200 if field == "max_tokens" else 400), answer.text  # as many as there may be
    assert field in answer.text or answer.status_code == 200


def test_what_is_gigantic_is_refused_or_answered_and_keeps_nobody_waiting(server: RunningServer) -> None:
    """One after the other, beside an answer that streams: it goes on, and the server's memory stays bounded."""
    asked = {"messages": [{"role": "user", "content": "long"}], "stream": True}
    bodies, before = gigantic(), peak_of(server)
    with (
        ThreadPoolExecutor(1) as beside,
        httpx.stream("POST", server.url + CHAT, json=asked, headers=bearer()) as answer,
    ):
        told = {name: beside.submit(send, server, path, body) for name, (path, body, _, _) in bodies.items()}
        longest, heard = 0.0, time.monotonic()
        for _ in answer.iter_raw():
            longest, heard = max(longest, time.monotonic() - heard), time.monotonic()
            if all(each.done() for each in told.values()):
                break
    assert {name: each.result() for name, each in told.items()} == {name: each[2:] for name, each in bodies.items()}
    assert longest < 3
    assert peak_of(server) - before < 300 * MIB


def send(server: RunningServer, path: str, body: str) -> tuple[int, str]:
    """The answer's status, and what its error names."""
    answer = httpx.post(server.url + path, content=body.encode(), headers=bearer(), timeout=30)
    return answer.status_code, "" if answer.is_success else str(answer.json()["error"]["param"])


def peak_of(server: RunningServer) -> int:
    """The most memory that the server has had so far."""
    status = Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return 1024 * int(found[1])


def test_leaving_while_the_question_is_being_sent_is_not_a_failure_of_the_server() -> None:
    with running_server() as server:
        host, port = server.url.removeprefix("http://").split(":")
        for path in (CHAT, "/"):
            with socket.create_connection((host, int(port))) as line:
                head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {bearer()['Authorization']}\r\n"
                line.sendall(f'{head}Content-Length: 5000\r\n\r\n{{"messages"'.encode())
            eventually(lambda path=path: f"POST {path} 499" in server.output())  # type: ignore[misc]  # the path is bound
        assert "Traceback" not in server.output()
        assert server.rows("select count(*) from exchanges") == [(0,)]


def test_a_stream_ends_when_its_account_is_disabled_past_the_server() -> None:
    with running_server(accounts={"ada": "staff"}) as server:
        question = {"messages": [{"role": "user", "content": "long"}], "stream": True}
        headers = bearer(key_of("ada"))
        with httpx.stream("POST", server.url + CHAT, json=question, headers=headers, timeout=3 * RECHECK_S) as answer:
            lines = answer.iter_lines()
            next(lines)
            server.change("update users set disabled = 1 where name = 'ada'")
            *_, error, done = [line for line in lines if line]
        assert '"code":"access_ended"' in error
        assert done == "data: [DONE]"
        assert server.status_of(answer.headers["x-request-id"]) == "cancelled"
        assert httpx.post(server.url + CHAT, json=question, headers=headers).status_code == 401
