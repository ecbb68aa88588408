"""What is reachable without signing in: exactly the public list. And what every answer carries."""

import httpx
import nicegui
import pytest

from tests.server import RunningServer, eventually
from ui.guard import own_path


@pytest.mark.parametrize("path", ["/login", "/livez", "/readyz", "/health", "/static/tokens.css"])
def test_the_public_list(server: RunningServer, path: str) -> None:
    assert httpx.get(server.url + path).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/", "/account", "/admin", "/review", "/c/1", "/docs", "/favicon.ico", "/nothing",
     "/login/", "/staticx", "/static", "/_nicegui/auto/static/x/y", "/livez/x", "/LOGIN"],
)  # fmt: skip
def test_everything_else_leads_to_the_login_page(server: RunningServer, path: str) -> None:
    answer = httpx.get(server.url + path)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login")


def test_whoever_was_signed_in_is_told_that_they_are_no_more(server: RunningServer) -> None:
    """A laptop that wakes up after its session has ended, say. The word in the address may be anybody's."""
    with httpx.Client(base_url=server.url, cookies={"qdesk_session": "over"}) as late:
        away = late.get("/c/1?x=2")
        assert away.headers["location"] == "/login?ended=signed-out&next=/c/1%3Fx%3D2"
        assert "You have been signed out." in late.get(away.headers["location"]).text
        assert "Your account has been disabled." in late.get("/login?ended=disabled").text
        assert 'lang="zh-CN"' in (chinese := late.get("/login?ended=disabled&lang=zh").text)
        assert "您的账户已被停用" in chinese
        for plain in (late.get("/login"), late.get("/login?ended=<b>")):
            assert 'class="notice' not in plain.text


def test_nicegui_socket_needs_a_session(server: RunningServer) -> None:
    assert httpx.get(server.url + "/_nicegui_ws/socket.io/?EIO=4&transport=polling").status_code == 403


@pytest.mark.parametrize("path", ["/static/../account", "/static/%2e%2e/auth.py", "/static/..%2fauth.py"])
def test_static_files_stay_in_their_folder(server: RunningServer, path: str) -> None:
    request = httpx.Request("GET", server.url)
    request.url = httpx.URL(server.url, raw_path=path.encode())
    with httpx.Client() as client:
        assert client.send(request).status_code in (303, 404)


def test_a_forged_host_header_opens_nothing(server: RunningServer) -> None:
    for host in ("evil/login?", "x/static/y", "127.0.0.1/livez#"):
        assert httpx.get(server.url + "/account", headers={"Host": host}).status_code == 421


def test_every_answer_carries_an_id_and_the_security_headers(server: RunningServer) -> None:
    for path in ("/login", "/account", "/v1/models", "/livez", "/static/tokens.css"):
        headers = httpx.get(server.url + path).headers
        assert len(headers["x-request-id"]) == 32
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]


def test_an_unknown_page_is_a_small_404_without_a_script(server: RunningServer) -> None:
    with server.sign_in("ada") as visitor:
        answer = visitor.get("/nothing")
        assert answer.status_code == 404
        assert "There is nothing at this address" in answer.text
        assert "<script" not in answer.text


def test_the_log_has_one_line_a_request_and_no_query(server: RunningServer) -> None:
    id = httpx.get(server.url + "/account?secret=x%0Ayz").headers["x-request-id"]
    httpx.get(server.url + "/no%0D%0Asuch%1b[31mpath")
    eventually(lambda: id in server.output())
    lines = [line for line in server.output().splitlines() if id in line]
    assert len(lines) == 1
    assert "GET /account 303" in lines[0]
    eventually(lambda: "/no%0D%0Asuch%1B%5B31mpath" in server.output())
    assert "secret" not in server.output()


def test_nicegui_files_are_public_by_version_only(server: RunningServer) -> None:
    assert httpx.get(f"{server.url}/_nicegui/{nicegui.__version__}/static/nicegui.js").status_code == 200
    assert httpx.get(f"{server.url}/_nicegui/0/static/nicegui.js").status_code == 303


@pytest.mark.parametrize(
    ("target", "path"), [("/c/1", "/c/1"), ("//x", "/"), ("/\\x", "/"), ("x", "/"), ("/a\nb", "/")]
)
def test_own_path(target: str, path: str) -> None:
    assert own_path(target) == path
