"""Qdesk at https://house/qdesk/: behind Debian's nginx, below a path of another site, which nothing leads out of."""

import json
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect
from websockets.sync.client import connect

from tests.browser.barriers import passes_in_the_dark_on_a_phone_too
from tests.nginx import nginx, site_of
from tests.server import PASSWORD, RunningServer, bearer, free_port, running_server

pytestmark = pytest.mark.browser

PATH = "/qdesk"


@pytest.fixture(scope="module")
def below(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunningServer, str]]:
    """A server, and its address below a path at nginx."""
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    url = f"https://127.0.0.1:{port}{PATH}"
    with (
        running_server(public_url=url) as server,
        nginx(folder, site_of(server, folder=folder, port=port, below=PATH), f"{url}/livez"),
    ):
        yield server, url


@pytest.fixture
def page(chromium: Browser, below: tuple[RunningServer, str]) -> Iterator[Page]:
    """A new window of somebody who has not signed in; what leads out of the path, and every error, fails the test."""
    _, url = below
    troubles: list[str] = []

    def watch(asked: str) -> None:
        if not asked.startswith((f"{url}/", "data:", "blob:")):
            troubles.append(f"a request outside: {asked}")

    with chromium.new_context(locale="en-GB", ignore_https_errors=True) as context:
        context.on("weberror", lambda error: troubles.append(f"script error: {error.error}"))
        context.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
        context.on("request", lambda request: watch(request.url))
        context.on("response", lambda answer: troubles.append(answer.url) if answer.status >= 400 else None)
        page = context.new_page()
        page.on("websocket", lambda socket: watch(socket.url.replace("wss", "https", 1)))
        yield page
    assert troubles == []


def stays_below(page: Page, url: str) -> None:
    """Everything on the page that leads anywhere leads to below this address."""
    script = """(url) => [...document.querySelectorAll("a[href], form[action]")]
        .every((one) => (one.href || one.action).startsWith(url + "/"))"""
    page.wait_for_function(script, arg=url)  # NiceGUI's links get their prefix when the page has been built


def test_people_do_everything_below_the_path(below: tuple[RunningServer, str], page: Page) -> None:
    _, url = below
    page.goto(f"{url}/account")  # leads to the form, and back here afterwards
    expect(page).to_have_url(re.compile(rf"^{url}/login\?next="))
    stays_below(page, url)
    page.get_by_label("Name").fill("admin")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page).to_have_url(f"{url}/account")
    assert {cookie["path"] for cookie in page.context.cookies()} == {PATH}
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all my conversations").click()
    assert download.value.url == f"{url}/conversations/export"

    page.get_by_role("link", name="Chat").click()
    box = page.get_by_label("Write a message")
    box.fill("long story")
    box.press("Enter")
    answer = page.locator(".turn .answer-text")
    expect(answer).to_contain_text("word5")
    expect(page.locator('.turn[data-status="running"]')).to_be_visible()  # it streams
    page.get_by_role("button", name="Stop").click()
    expect(page.locator('.turn[data-status="stopped"]')).to_be_visible()
    expect(page).to_have_url(re.compile(rf"^{url}/c/\w+$"))
    page.reload()
    expect(answer).to_contain_text("word5")

    page.get_by_role("link", name="New chat").click()
    expect(page).to_have_url(f"{url}/")
    page.go_back()
    expect(answer).to_contain_text("word5")
    for path in ("/account", "/review", "/admin", "/admin/history", "/admin/audit", "/docs", "/"):
        page.goto(url + path)
        expect(page.locator("main").first).to_be_visible()
        if path == "/":
            expect(page.locator(".sidebar-list li")).to_have_count(1)
            page.locator(".own-button").click()
        stays_below(page, url)
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_url(f"{url}/login")


def test_the_api_and_its_streams_are_below_the_path(below: tuple[RunningServer, str]) -> None:
    server, url = below
    question = {"messages": [{"role": "user", "content": "long"}], "stream": True}
    with httpx.Client(headers=bearer(), verify=False, timeout=60) as program:
        with program.stream("POST", f"{url}/v1/chat/completions", json=question) as answer:
            lines = answer.iter_lines()
            assert any("word0" in line for line in lines)
            assert server.status_of(answer.headers["x-request-id"]) == "running"  # most of it is still to come
        assert program.get(f"{url}/openapi.json").json()["servers"] == [{"url": PATH}]
        assert program.post(f"{url}/", json={"prompt": "hello"}).json()["response"] == "You said: hello"
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    address = url.replace("https", "wss") + "/v1/chat/ws"
    with connect(address, additional_headers=bearer(), ssl=trusting) as socket:
        socket.send(json.dumps({"messages": [{"role": "user", "content": "hello"}]}))
        frames = iter(lambda: socket.recv(timeout=60), "[DONE]")
        said = "".join(json.loads(frame)["choices"][0]["delta"].get("content") or "" for frame in frames)
    assert said == "You said: hello"


def test_the_set_up_link_and_its_form_are_below_the_path(tmp_path: Path, chromium: Browser) -> None:
    with running_server(tmp_path, admin_password="", public_url=f"http://127.0.0.1:1{PATH}") as server:
        link = re.search(rf"http://127.0.0.1:1{PATH}(/setup\?token=\S+)", server.output())
        assert link
        page = httpx.get(f"{server.url}{PATH}{link[1]}")  # from a proxy that leaves the path as it is
        assert page.status_code == 200
        assert f'action="{PATH}/setup"' in page.text
        with chromium.new_context(locale="en-GB") as context:
            first = context.new_page()
            first.goto(f"{server.url}{PATH}{link[1]}")
            expect(first.get_by_label("Password again")).to_be_visible()
            passes_in_the_dark_on_a_phone_too(first)
        assert httpx.get(server.url + "/admin").headers["location"] == f"{PATH}/login?next=/admin"  # one that does not
        assert f'href="{PATH}/login"' in httpx.get(server.url + "/invite?token=none").text
