"""Windows of the browser, signed in, watched, and used again: opening one costs twice what another page in it does.

    page = windows.open(server, "/admin", name="chief")
    windows.leave(page)                                  # when the test is over

Who opens the next window gets one that has been left: the same tab with nothing of what was before in it, neither
cookies nor what scripts have kept nor rights. Only windows of the usual kind are used again, and none that a test has
prepared before its page came, since what is done to all pages of a window cannot be undone.
"""

from contextlib import suppress

from playwright.sync_api import Browser, Error, Page, ViewportSize

from tests.server import RunningServer

PICTURE = "/static/qdesk.svg"  # costs nothing to open, for tests that prepare the window before its page comes
USUAL: dict[str, object] = {"locale": "en-GB", "reduced_motion": "reduce"}  # what moves is drawn sixty times a second
SIZE = ViewportSize(width=1280, height=720)  # Playwright's own
MOST = 4  # that wait to be used again


class Windows:
    def __init__(self, chromium: Browser) -> None:
        self.troubles: list[str] = []  # what has gone wrong in any window that is open
        self._chromium = chromium
        self._sessions: dict[tuple[str, str], str] = {}  # their tokens, by server and name
        self._servers: dict[Page, RunningServer] = {}  # whose pages are shown in windows that can be used again
        self._left: list[Page] = []

    def open(self, server: RunningServer, path: str = "/", *, name: str = "admin", **options: object) -> Page:
        usual = {**USUAL, **options} == USUAL and path != PICTURE
        page = self._left.pop() if usual and self._left else self._new({**USUAL, **options})
        if usual:
            self._servers[page] = server
        if (server.url, name) not in self._sessions:
            self._sessions[server.url, name] = server.new_session(name)
        session = {"name": "qdesk_session", "value": self._sessions[server.url, name], "url": server.url}
        page.context.add_cookies([session])  # type: ignore[list-item]  # it is checked there
        page.goto(server.url + path)
        return page

    def leave(self, page: Page) -> None:
        """Keep the window for whoever opens the next, or close it."""
        server = self._servers.pop(page, None)
        if server is None or page.is_closed() or len(self._left) >= MOST or not _emptied(page, server):
            page.context.close()
        else:
            self._left.append(page)

    def close(self, page: Page) -> None:
        self._servers.pop(page, None)
        page.context.close()

    def _new(self, options: dict[str, object]) -> Page:
        context = self._chromium.new_context(**options)  # type: ignore[arg-type]  # new_context checks
        context.on("weberror", lambda error: self.troubles.append(f"script error: {error.error}"))
        # No other host is found (tests/chromium.py). Telling of every request would take a tenth of the tests' time.
        context.on("requestfailed", lambda request: self._watch(request.url))
        return context.new_page()

    def _watch(self, url: str) -> None:
        servers = {address for address, _ in self._sessions}
        allowed = [*servers, *(address.replace("http", "ws", 1) for address in servers), "data:", "blob:"]
        if not url.startswith(tuple(allowed)):
            self.troubles.append(f"request to another host: {url}")


def _emptied(page: Page, server: RunningServer) -> bool:
    """Leave the page for a picture of the same server. False where that server is gone."""
    for tab in page.context.pages:
        if tab is not page:
            tab.close()
    with suppress(Error):
        page.goto(server.url + PICTURE)
        page.evaluate("localStorage.clear(); sessionStorage.clear(); window.name = ''")
        page.context.clear_cookies()
        page.context.clear_permissions()
        page.context.set_offline(False)
        page.emulate_media(media="null", color_scheme="light", reduced_motion="reduce")
        if page.viewport_size != SIZE:
            page.set_viewport_size(SIZE)
        return True
    return False
