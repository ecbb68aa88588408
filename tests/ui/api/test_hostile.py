"""What careless and hostile programs and files hold: nothing becomes a 500 or a stack trace, no place stays taken."""

import json
import random
import re
import socket
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.server import RunningServer, bearer, eventually, form_token, key_of, running_server
from ui.auth import RECHECK_S

CHAT, PLAIN, TOKENS = "/v1/chat/completions", "/v1/completions", "/v1/tokenize"
LARGE = 3_900_000  # bytes: just less than a body may have
FILE = 20 * 1024**2  # bytes: as large as an imported file may be
MIB = 1 << 20

Told = tuple[int, str]  # the status of an answer, and what it says or names


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
    bodies = gigantic()
    asks = {name: partial(send, server, path, body) for name, (path, body, _, _) in bodies.items()}
    assert beside_an_answer(server, asks) == {name: each[2:] for name, each in bodies.items()}


def test_files_full_of_nothing_are_refused_as_well(server: RunningServer) -> None:
    """As large as a file may be: far too many values, and as many wrong ones as may be in one of its lists."""
    too_many, wrong = "A file may hold 1,000,000 values. Import it in several pieces.", many("[]", 499_990)
    too_long = "Line 1: sampling.stop: List should have at most 8 items after validation, not 499990"
    talk = f'{{"format": "qdesk.conversation", "version": 1, "exchanges": [], "sampling": {{"stop": {wrong}}}}}'
    files = {
        "empty lists": (many("[]", FILE // 3), too_many),
        "empty lines": ("\n" * FILE, too_many),
        "objects in lines": ("{}\n" * (FILE // 3), too_many),
        "texts to stop at": (talk, too_long),
    }
    with server.sign_in(**{"Accept-Language": "en"}) as browser:
        browser.headers["x-form-token"] = form_token(browser.get("/account").text)
        told = beside_an_answer(server, {name: partial(bring, browser, file) for name, (file, _) in files.items()})
    assert told == {name: (400, sentence) for name, (_, sentence) in files.items()}


def beside_an_answer(server: RunningServer, asks: Mapping[str, Callable[[], Told]]) -> dict[str, Told]:
    """What each of these is told, asked one after the other while an answer streams that must not stand still."""
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5", encoding="ascii")  # the peak is counted anew
    asked = {"messages": [{"role": "user", "content": "long"}], "stream": True}
    before = peak_of(server)
    with (
        ThreadPoolExecutor(1) as beside,
        httpx.stream("POST", server.url + CHAT, json=asked, headers=bearer()) as answer,
    ):
        told = {name: beside.submit(ask) for name, ask in asks.items()}
        longest, heard = 0.0, time.monotonic()
        for _ in answer.iter_raw():
            longest, heard = max(longest, time.monotonic() - heard), time.monotonic()
            if all(each.done() for each in told.values()):
                break
    assert longest < 3
    assert peak_of(server) - before < 300 * MIB
    return {name: each.result() for name, each in told.items()}


def send(server: RunningServer, path: str, body: str) -> Told:
    """The answer's status, and what its error names."""
    answer = httpx.post(server.url + path, content=body.encode(), headers=bearer(), timeout=30)
    return answer.status_code, "" if answer.is_success else str(answer.json()["error"]["param"])


def bring(browser: httpx.Client, file: str) -> Told:
    """The status of an import's answer, and its first sentence."""
    answer = browser.post("/conversations/import", content=file.encode(), timeout=30)
    return answer.status_code, answer.json()["errors"][0]


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
