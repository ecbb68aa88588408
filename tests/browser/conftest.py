"""Real Chromium against the real server. Run in a process of their own: `pytest tests/browser -m browser`.

    def test_something(server: RunningServer, visit: Visit) -> None:
        page = visit(server)                          # signed in as the administrator
        page.get_by_label("Write a message").fill("Hello")

`chat` shows a new chat as well, in a window that a test before has left: a page that is opened costs a second of
processor time. Every window is watched: a script error, or a request to any other host, fails the test.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Protocol

import pytest
from playwright.sync_api import Browser, Page, expect

from storage.records import UserRole
from tests.browser.windows import Windows
from tests.chromium import CHROMIUM, MISSING, running_chromium
from tests.server import RunningServer, running_server


class Visit(Protocol):
    """Open a page of this server in a browser window of its own, signed in; other options are new_context's."""

    def __call__(
        self,
        server: RunningServer,
        path: str = "/",
        *,
        name: str = "admin",
        **options: object,
    ) -> Page: ...


class Chat(Protocol):
    """A new chat in a window that a test of this file has left, or else a new one; options are new_context's."""

    def __call__(self, server: RunningServer, *, name: str = "admin", **options: object) -> Page: ...


Key = tuple[str, str, str]  # server, name, options
Left = defaultdict[Key, list[Page]]  # windows that show a new chat

# What may be beside a new chat: files of a draft, what was refused, the archive, and the offer to undo.
LEFT_OVER = ".file-chip, .composer [role=alert], .waiting-bar, .back-button, .undo"


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
def windows(chromium: Browser) -> Windows:
    return Windows(chromium)


@pytest.fixture
def watched(windows: Windows) -> Iterator[Visit]:
    """As `visit`, but for whoever closes the window."""
    yield windows.open
    found, windows.troubles[:] = windows.troubles[:], []
    assert not found


@pytest.fixture
def visit(watched: Visit, windows: Windows, request: pytest.FixtureRequest) -> Iterator[Visit]:
    pages: list[Page] = []
    failed = request.session.testsfailed

    def open_window(server: RunningServer, path: str = "/", *, name: str = "admin", **options: object) -> Page:
        pages.append(watched(server, path, name=name, **options))
        return pages[-1]

    yield open_window
    for page in pages:
        if request.session.testsfailed == failed:
            windows.leave(page)
        else:
            windows.close(page)


@pytest.fixture(scope="module")
def left(windows: Windows) -> Iterator[Left]:
    lefts: Left = defaultdict(list)
    yield lefts
    for page in chain.from_iterable(lefts.values()):
        windows.leave(page)


@pytest.fixture
def chat(watched: Visit, windows: Windows, left: Left, request: pytest.FixtureRequest) -> Iterator[Chat]:
    taken: list[tuple[Key, Page]] = []
    failed = request.session.testsfailed

    def take_up(server: RunningServer, *, name: str = "admin", **options: object) -> Page:
        key = (server.url, name, repr(options))
        taken.append((key, left[key].pop() if left[key] else watched(server, "/", name=name, **options)))
        return taken[-1][1]

    yield take_up
    for key, page in taken:
        if request.session.testsfailed > failed:
            windows.close(page)
        elif _begins_anew(page):
            left[key].append(page)
        else:
            windows.leave(page)


def _begins_anew(page: Page) -> bool:
    """Leave the conversation for a new one. False where something else is on the page than at first."""
    for tab in page.context.pages:
        if tab is not page:
            tab.close()
    if page.is_closed() or page.locator("dialog[open]").count() or not page.locator(".new-chat").count():
        return False
    page.evaluate("localStorage.clear(); document.querySelector('.new-chat').click()")
    page.locator(".composer textarea").fill("")
    expect(page.locator(".welcome")).to_be_visible()
    expect(page.locator(".turn")).to_have_count(0)
    return not page.locator(LEFT_OVER).count() and not page.locator(".sidebar-search").input_value()
