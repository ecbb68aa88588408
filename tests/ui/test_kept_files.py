"""A file that lasts is read once; what may change, and what is asked for in part, is asked for each time."""

import gzip

import httpx
import pytest
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from ui.kept_files import KeptFiles
from ui.middleware import FILES

FILE = f"{FILES}static/vue.js"
TEXT = "text " * 1000


class Routes:
    """Answers everything but /static/none, and counts."""

    asked = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        status = 404 if scope["path"] == "/static/none" else 200
        answer: Response = PlainTextResponse(TEXT, status, headers={"ETag": "one"})
        await answer(scope, receive, send)


async def get(app: KeptFiles, path: str, **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://qdesk") as browser:
        return await browser.get(path, headers={"Accept-Encoding": "identity", **headers})


@pytest.mark.parametrize("path", [FILE, "/static/tokens.css?v=1"])
async def test_a_file_is_read_once(path: str) -> None:
    app = KeptFiles(routes := Routes())
    first, second = await get(app, path), await get(app, path)
    assert routes.asked == 1
    assert first.text == second.text == TEXT
    assert first.headers == second.headers
    assert first.headers["etag"] == "one"
    assert first.headers["content-length"] == str(len(TEXT))


async def test_it_is_kept_as_each_browser_wants_it() -> None:
    app = KeptFiles(routes := Routes())
    for _ in range(2):
        plain, packed = await get(app, FILE), await get(app, FILE, **{"Accept-Encoding": "br, gzip"})
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert int(packed.headers["content-length"]) == len(gzip.compress(TEXT.encode(), 9, mtime=0))
        assert plain.text == packed.text == TEXT
        assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert routes.asked == 2


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/login", {}),
        (f"{FILES}dynamic_resources/codehilite", {}),
        ("/static/none", {}),
        (FILE, {"Range": "bytes=0-9"}),
        (FILE, {"If-None-Match": "one"}),
    ],
)
async def test_everything_else_is_asked_for_each_time(path: str, headers: dict[str, str]) -> None:
    app = KeptFiles(routes := Routes())
    for _ in range(2):
        assert (await get(app, path, **headers)).text == TEXT
    assert routes.asked == 2


async def test_what_is_kept_has_a_bound() -> None:
    app = KeptFiles(routes := Routes(), most_bytes=len(TEXT))
    for path in (FILE, "/static/second", FILE, "/static/second"):
        assert (await get(app, path)).text == TEXT
    assert routes.asked == 3
