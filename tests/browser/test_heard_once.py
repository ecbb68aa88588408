"""What somebody does while the page has no socket, or one whose network is gone, counts: once, and in its order."""

import re
import time
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, WebSocketRoute, expect

from tests.browser.conftest import Visit
from tests.browser.windows import PICTURE
from tests.server import RunningServer, running_server

pytestmark = pytest.mark.browser

PREFETCHED = {"Sec-Purpose": "prefetch"}  # such a page shakes hands in an event of its own, others as they connect

# Of what waits for ten milliseconds, which NiceGUI does until there is a socket, the newest comes first.
NEWEST_FIRST = """(() => {
    const wait = window.setTimeout;
    let waiting = [], going = false;
    window.setTimeout = (work, ms, ...more) =>
        ms !== 10 ? wait(work, ms, ...more) : going ? waiting.push(work) : waiting.unshift(work);
    setInterval(() => {
        going = true;
        waiting.splice(0).forEach((work) => work());
        going = false;
    }, 10);
})();"""


class Line:
    """One connection of the page; `to_page` and `to_server`: whether anything gets through."""

    def __init__(self, page: WebSocketRoute, waits_at: str) -> None:
        """What the server says from a packet that begins so on comes when `go_on` is called; "": at once."""
        self._page, self._server = page, page.connect_to_server()
        self.to_page = self.to_server = True
        self._waits_at = waits_at
        self.waiting: list[str | bytes] = []
        page.on_message(self._asked)
        self._server.on_message(self._said)

    def _asked(self, packet: str | bytes) -> None:
        if self.to_server:
            self._server.send(packet)

    def _said(self, packet: str | bytes) -> None:
        if self.waiting or (self._waits_at and str(packet).startswith(self._waits_at)):
            self.waiting.append(packet)
        elif self.to_page:
            self._page.send(packet)

    def go_on(self) -> None:
        self._waits_at, waiting, self.waiting = "", self.waiting, []
        for packet in waiting:
            self._page.send(packet)

    def cut(self) -> None:
        self._page.close()
        self._server.close()


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(accounts={"ada": "staff"}) as running:
        yield running


@pytest.fixture(autouse=True)
def no_templates(server: RunningServer) -> None:
    server.change("delete from templates")


def lines_of(page: Page, server: RunningServer, headers: dict[str, str], waits_at: str = "") -> list[Line]:
    """Open the account page; the list gets each connection that it makes."""
    lines: list[Line] = []
    page.route_web_socket(re.compile("socket.io"), lambda route: lines.append(Line(route, waits_at)))
    page.add_init_script(NEWEST_FIRST)
    page.set_extra_http_headers(headers)
    page.goto(f"{server.url}/account")
    return lines


def write_template(page: Page, name: str) -> None:
    page.get_by_label("Name of the template").fill(name)
    page.get_by_label("Text", exact=True).fill(f"text of {name}")
    page.get_by_role("button", name="Save the template").click()


def until(page: Page, condition: Callable[[], object]) -> None:
    """Wait as Playwright does: packets pass through this process meanwhile."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        page.wait_for_timeout(20)


def kept(page: Page, name: str) -> None:
    expect(page.locator(".row").filter(has_text=f"text of {name}")).to_have_count(1)


def templates(server: RunningServer) -> list[tuple[object, ...]]:
    return server.rows("select name, text from templates order by name")


@pytest.mark.parametrize(("headers", "waits_at"), [({}, "40"), (PREFETCHED, "430")])
def test_what_is_done_before_the_handshake_counts(
    server: RunningServer, visit: Visit, headers: dict[str, str], waits_at: str
) -> None:
    page = visit(server, PICTURE, name="ada")
    (line,) = lines_of(page, server, headers, waits_at)
    until(page, lambda: line.waiting)
    write_template(page, "early")
    assert templates(server) == []
    line.go_on()
    kept(page, "early")
    assert templates(server) == [("early", "text of early")]


def test_what_is_said_into_a_dead_connection_counts(server: RunningServer, visit: Visit) -> None:
    page = visit(server, PICTURE, name="ada")
    lines = lines_of(page, server, {})
    write_template(page, "before")
    kept(page, "before")
    lines[0].to_page = lines[0].to_server = False
    write_template(page, "meanwhile")
    lines[0].cut()
    kept(page, "meanwhile")
    assert templates(server) == [("before", "text of before"), ("meanwhile", "text of meanwhile")]


def test_what_is_done_as_a_computer_wakes_up_counts_in_its_order(server: RunningServer, visit: Visit) -> None:
    """The network went first. Then the clock tells the page, when somebody writes on, that its connection is over."""
    page = visit(server, PICTURE, name="ada")
    (line,) = lines_of(page, server, {})
    page.wait_for_function("window.socket?.connected")
    line.to_page = line.to_server = False
    page.get_by_label("Name of the template").fill("sleepy")
    page.evaluate("window.now = Date.now; Date.now = () => now() + 3_600_000")
    page.get_by_label("Text", exact=True).fill("text of sleepy")
    page.wait_for_function("!window.socket.connected")
    page.evaluate("Date.now = now")  # else the next one would be over at once too
    page.get_by_role("button", name="Save the template").click()
    kept(page, "sleepy")


def test_what_is_done_between_two_connections_counts(server: RunningServer, visit: Visit) -> None:
    page = visit(server, PICTURE, name="ada")
    lines = lines_of(page, server, PREFETCHED)
    write_template(page, "before")
    kept(page, "before")
    page.evaluate("window.sameDocument = true")
    lines[0].cut()
    page.wait_for_function("!window.socket.connected")
    write_template(page, "meanwhile")
    kept(page, "meanwhile")
    assert templates(server) == [("before", "text of before"), ("meanwhile", "text of meanwhile")]
    assert page.evaluate("window.sameDocument")


def test_what_was_heard_without_the_page_knowing_does_not_count_twice(server: RunningServer, visit: Visit) -> None:
    page = visit(server, PICTURE, name="ada")
    lines = lines_of(page, server, {})
    page.wait_for_function("window.socket?.connected")
    lines[0].to_page = False
    write_template(page, "once")
    until(page, lambda: templates(server) == [("once", "text of once")])
    lines[0].cut()
    kept(page, "once")
    write_template(page, "after")  # comes after all that is said again
    kept(page, "after")
    assert templates(server) == [("after", "text of after"), ("once", "text of once")]
