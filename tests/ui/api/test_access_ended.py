"""What runs for a program ends when its key is revoked, its session ends, or the account is disabled."""

import json
from collections.abc import Iterator

import httpx
import pytest
from websockets.sync.client import connect

from tests.server import RunningServer, bearer, eventually, key_of, running_server
from tests.ui.api.test_running import running_long


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(
        accounts={"ada": "staff", "bob": "staff", "eve": "staff"}, max_concurrent_requests=2
    ) as running:
        yield running


def revoke(server: RunningServer, name: str) -> None:
    """As an operator with a shell might, past the running server."""
    server.change("delete from api_keys where user_id = (select id from users where name = ?)", name)


def test_a_stream_ends_with_a_clear_error_when_its_key_is_revoked(server: RunningServer) -> None:
    with running_long(server, "ada") as (id, lines):
        revoke(server, "ada")
        rest = [line for line in lines if line]
        error = json.loads(rest[-2].removeprefix("data: "))["error"]
        assert (error["code"], error["type"]) == ("access_ended", "authentication_error")
        assert "was revoked" in error["message"]
        assert rest[-1] == "data: [DONE]"
    assert server.rows("select status, error from exchanges where id = ?", id) == [("cancelled", error["message"])]


def test_a_disabled_accounts_stream_says_so(server: RunningServer) -> None:
    with running_long(server, "bob") as (_, lines):
        server.change("update users set disabled = 1 where name = 'bob'")
        rest = [line for line in lines if line]
        error = json.loads(rest[-2].removeprefix("data: "))["error"]
        assert error["code"] == "access_ended"
        assert "was disabled" in error["message"]


def test_the_socket_of_a_session_that_ends_is_told(server: RunningServer) -> None:
    with server.sign_in("eve") as browser:
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        url = server.url.replace("http", "ws") + "/v1/chat/ws"
        with connect(url, additional_headers={"Cookie": cookies}) as socket:
            socket.send(json.dumps({"messages": [{"role": "user", "content": "long"}], "stream": True}))
            assert "assistant" in str(socket.recv(timeout=30))
            server.change("delete from sessions where user_id = (select id from users where name = 'eve')")
            while "error" not in (frame := json.loads(socket.recv(timeout=30))):
                assert frame["choices"][0]["finish_reason"] is None
            assert frame["error"]["code"] == "access_ended"
            assert "session" in frame["error"]["message"]


def test_a_revoked_key_asks_nothing_more(server: RunningServer) -> None:
    eventually(lambda: httpx.get(server.url + "/v1/models", headers=bearer(key_of("ada"))).status_code == 401)
