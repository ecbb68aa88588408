"""What comes in before anybody knows who it is: heads and bodies without end, names of the server; what answers say."""

import re
import socket
from contextlib import closing, suppress

import httpx
import psutil
import pytest

from engine.settings import Settings
from tests.server import RunningServer, bearer, running_server
from ui.connections import LONGEST_HEAD
from ui.origins import Origins

MIB = 2**20
ENDLESS = {
    "a header": (b"GET /login HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"a"),
    "headers": (b"GET /login HTTP/1.1\r\nHost: localhost\r\n", b"X-A: b\r\n"),
    "an address": (b"GET /", b"a"),
    "a chunk's extension": (b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"a"),
    "trailers": (
        b"POST /login HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n", b"X: y\r\n",
    ),
}  # fmt: skip


def memory(server: RunningServer) -> int:
    return int(psutil.Process(server.process.pid).memory_info().rss)


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_never_ends_is_cut_off_and_not_kept(server: RunningServer, kind: str) -> None:
    """Without signing in, one connection could take all of the memory."""
    head, more = ENDLESS[kind]
    before = memory(server)
    host, port = server.url.removeprefix("http://").split(":")
    with closing(socket.create_connection((host, int(port)), timeout=60)) as line:
        line.sendall(head)
        sent = 0
        with suppress(ConnectionError):
            while sent < 64 * MIB:
                line.sendall(more * (MIB // len(more)))
                sent += MIB
    assert sent < 64 * MIB
    assert memory(server) - before < 32 * MIB
    assert httpx.get(server.url + "/livez").status_code == 200


def test_what_fits_is_answered(server: RunningServer) -> None:
    for headers in ({"X-Long": "a" * (LONGEST_HEAD // 2)}, {f"X-{n}": "a" for n in range(500)}):
        assert httpx.get(server.url + "/livez", headers=headers).status_code == 200
    long = httpx.post(server.url + "/login", content=b"a" * MIB)  # a body is no head; this one is no form either
    assert long.status_code == 400


@pytest.mark.parametrize(
    ("settings", "host", "fine"),
    [
        ({}, "127.0.0.1:8080", True),
        ({}, "localhost", True),
        ({}, "[::1]:8080", True),
        ({}, "192.168.1.5:8080", True),
        ({}, socket.gethostname(), True),
        ({}, "elsewhere.example", False),
        ({}, "localhost.elsewhere.example", False),
        ({}, "127.0.0.1.elsewhere.example", False),
        ({}, "user@localhost", False),
        ({}, "localhost/x", False),
        ({}, "localhost:x", False),
        ({}, "", False),
        ({"host": "10.0.0.7"}, "10.0.0.7:8080", True),
        ({"public_url": "https://qdesk.example.org"}, "qdesk.example.org", True),
        ({"public_url": "https://qdesk.example.org"}, "QDESK.example.org.", True),
        ({"public_url": "https://qdesk.example.org"}, "127.0.0.1:8080", True),
        ({"public_url": "https://qdesk.example.org"}, "192.168.1.5", False),
        ({"public_url": "https://qdesk.example.org"}, "elsewhere.example", False),
        ({"public_url": "https://qdesk.example.org", "allowed_hosts": "qdesk, chat.local"}, "qdesk:8080", True),
        ({"public_url": "https://qdesk.example.org", "allowed_hosts": "qdesk, chat.local"}, "chat.local", True),
    ],
)
def test_names_of_the_server(settings: dict[str, str], host: str, fine: bool) -> None:
    assert Origins(Settings(**settings)).may_address(host) is fine  # type: ignore[arg-type]  # names of settings


@pytest.mark.parametrize(
    ("origin", "host", "fine"),
    [
        ("https://qdesk.example.org", "qdesk.example.org", True),
        ("https://qdesk.example.org", "127.0.0.1:8080", True),  # the proxy asks by its own name
        ("http://qdesk.example.org", "qdesk.example.org", False),  # somebody on the way, without TLS
        ("https://qdesk.example.org:444", "qdesk.example.org:444", False),
        ("http://localhost:8080", "localhost:8080", True),
        ("http://localhost:3000", "localhost:8080", False),
        ("https://elsewhere.example", "elsewhere.example", False),
        ("null", "localhost:8080", False),
        ("", "localhost:8080", False),
        ("file://localhost:8080", "localhost:8080", False),
        (None, "localhost:8080", True),
    ],
)
def test_whose_pages_may_call(origin: str | None, host: str, fine: bool) -> None:
    assert Origins(Settings(public_url="https://qdesk.example.org")).may_call(origin, host) is fine


def test_what_answers_tell_the_browser_to_allow(server: RunningServer) -> None:
    with server.sign_in("ada") as ada:
        pages = [ada.get(path) for path in ("/account", "/account", "/docs")]
        page, plain = ada.get("/account").headers, httpx.get(server.url + "/login").headers
        data, file = ada.get("/v1/requests").headers, ada.get("/account/export").headers
    for headers in (page, plain, data, file):
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "base-uri 'none'" in policy
        assert not [word for word in ("http:", "https:", "*", "blob:") if word in policy]
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "no-store" in headers["cache-control"]
    assert "form-action 'self'" in page["content-security-policy"]
    assert "script-src" not in plain["content-security-policy"], "the plain pages have no script"
    assert "default-src 'none'" in data["content-security-policy"]
    nonces = [
        re.findall(r"script-src 'self' 'nonce-([\w-]{22})'", each.headers["content-security-policy"])[0]
        for each in pages
    ]
    assert len(set(nonces)) == 3, "each answer has its own"
    for each, nonce in zip(pages, nonces, strict=True):
        scripts = re.findall(r"<script[^>]*>", each.text)
        assert [tag for tag in scripts if "src=" not in tag and f' nonce="{nonce}"' not in tag] == []
        assert f'nonce="{nonce}"' in each.text


def test_no_prefix_from_outside_gets_into_a_page(server: RunningServer) -> None:
    with server.sign_in("ada") as ada:
        assert "elsewhere" not in ada.get("/account", headers={"X-Forwarded-Prefix": "/elsewhere"}).text


def test_a_fault_of_ours_says_nothing_of_itself() -> None:
    """The database loses a table behind the server's back; people and programs get a number to ask for."""
    with running_server() as server, server.sign_in() as admin:
        server.change("drop table templates")
        page = admin.get("/account", headers={"Accept-Language": "en"})
        assert page.status_code == 500
        assert page.headers["x-request-id"] in page.text
        for word in ("templates", "sqlite", "OperationalError", "Traceback", "select", ".py"):
            assert word.lower() not in page.text.lower()
        server.change("drop table idempotency_keys")
        asked = {"messages": [{"role": "user", "content": "Hello"}]}
        headers = {**bearer(), "Idempotency-Key": "k"}
        call = httpx.post(server.url + "/v1/chat/completions", json=asked, headers=headers)
        assert call.status_code == 500
        assert "idempotency" not in call.text.lower()
