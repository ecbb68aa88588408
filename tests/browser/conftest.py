"""Real Chromium against the real server. Run in a process of their own: `pytest tests/browser -m browser`.

    def test_something(server: RunningServer, visit: Visit) -> None:
        page = visit(server)                          # signed in as the administrator
        page.get_by_label("Write a message").fill("Hello")

Every page that `visit` opens is watched: a script error, or a request to any other host, fails the test.
"""

from collections.abc import Iterator
from typing import Protocol

import httpx
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from storage.records import UserRole
from tests.chromium import CHROMIUM, MISSING, running_chromium
from tests.server import PASSWORD, RunningServer, running_server


class Visit(Protocol):
    """Open a page of this server in a browser window of its own, signed in; other options are new_context's."""

    def __call__(
        self,
        server: RunningServer,
        path: str = "/",
        *,
        name: str = "admin",
        password: str = PASSWORD,
        **options: object,
    ) -> Page: ...


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip(MISSING)
    expect.set_options(timeout=20_000)  # the machine may be busy
    with running_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """One server for the tests of a file that need no settings of their own."""
    with running_server() as running:
        yield running


@pytest.fixture(scope="module")
def office() -> Iterator[RunningServer]:
    """A server with one running place and other models, and people beside `admin`, all with the same password."""
    people: dict[str, UserRole] = {"ada": "staff", "bob": "staff", "eve": "staff", "rita": "reviewer", "chief": "admin"}
    with running_server(
        accounts=people, max_concurrent_requests=1, max_new_tokens=4000, models="second,missing", drain_s=1
    ) as running:
        yield running


@pytest.fixture(scope="session")
def sessions() -> dict[tuple[str, str], httpx.Cookies]:
    """Cookies of those who have signed in, by server and name: checking a password takes its time."""
    return {}


@pytest.fixture
def visit(chromium: Browser, sessions: dict[tuple[str, str], httpx.Cookies]) -> Iterator[Visit]:
    contexts: list[BrowserContext] = []
    troubles: list[str] = []

    def open_page(
        server: RunningServer, path: str = "/", *, name: str = "admin", password: str = PASSWORD, **options: object
    ) -> Page:
        if (server.url, name) not in sessions:
            with server.sign_in(name, password) as client:
                sessions[server.url, name] = client.cookies
        usual = {"locale": "en-GB", "reduced_motion": "reduce"}  # what moves is drawn sixty times a second
        context = chromium.new_context(**{**usual, **options})  # type: ignore[arg-type]  # new_context checks
        contexts.append(context)
        context.add_cookies(
            [{"name": c.name, "value": c.value or "", "url": server.url} for c in sessions[server.url, name].jar]
        )
        context.on("weberror", lambda error: troubles.append(f"script error: {error.error}"))
        context.on("request", lambda request: _watch(request.url, server, troubles))
        page = context.new_page()
        page.goto(server.url + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles


def _watch(url: str, server: RunningServer, troubles: list[str]) -> None:
    if not url.startswith((server.url, server.url.replace("http", "ws", 1), "data:", "blob:")):
        troubles.append(f"request to another host: {url}")
