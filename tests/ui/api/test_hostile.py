"""What careless and hostile programs send: nothing becomes a 500 or a stack trace, and no place stays taken."""

import socket

import httpx
import pytest

from tests.server import RunningServer, bearer, eventually, key_of, running_server
from ui.auth import RECHECK_S

CHAT = "/v1/chat/completions"


@pytest.mark.parametrize("field", ["max_tokens", "top_k", "seed", "n", "temperature"])
def test_a_number_beyond_all_bounds_is_no_failure(server: RunningServer, field: str) -> None:
    body = f'{{"messages": [{{"role": "user", "content": "hi"}}], "{field}": {"9" * 400}}}'
    answer = httpx.post(server.url + CHAT, content=body, headers=bearer())
    assert answer.status_code == (200 if field == "max_tokens" else 400), answer.text  # as many as there may be
    assert field in answer.text or answer.status_code == 200


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
