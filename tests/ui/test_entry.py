"""What becomes of every request, whatever serves it: HEAD, and a store in trouble before anybody is known."""

from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware

from engine.settings import Settings
from storage import Store
from tests.server import RunningServer, bearer, eventually
from ui.auth import Auth
from ui.banner import Board
from ui.entry import Entry
from ui.guard import Guard


@pytest.mark.parametrize(
    ("path", "status"),
    [("/login", 200), ("/livez", 200), ("/", 303), ("/static/tokens.css", 200), ("/v1/models", 401), ("/login/x", 303)],
)
def test_head_is_answered_as_get_without_the_body(server: RunningServer, path: str, status: int) -> None:
    head, get = httpx.head(server.url + path), httpx.get(server.url + path)
    assert (head.status_code, head.content) == (status, b"")
    assert get.status_code == status
    assert head.headers.keys() >= get.headers.keys() - {"date", "content-length", "transfer-encoding"}


def test_head_of_what_needs_to_be_signed_in(server: RunningServer) -> None:
    with server.sign_in("ada") as ada:
        for path, status in (("/", 200), ("/account", 200), ("/openapi.json", 200), ("/nothing", 404)):
            answer = ada.head(path)
            assert (answer.status_code, answer.content) == (status, b"")
    id = httpx.head(server.url + "/v1/chat/completions", headers=bearer()).headers["x-request-id"]
    eventually(lambda: f"{id} - HEAD /v1/chat/completions 405" in server.output())


@pytest.fixture
def troubled(tmp_path: Path) -> httpx.AsyncClient:
    """Asks a server whose database cannot be read."""
    settings = Settings(data_dir=tmp_path, session_secret=SecretStr("a secret of more than enough letters"))
    auth = Auth(Store(f"sqlite:///{tmp_path}/gone/qdesk.db"), settings)
    door = [Middleware(Entry, secure=False, base="", board=Board()), Middleware(Guard, auth=auth, settings=settings)]
    app = Starlette(middleware=door)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


async def test_a_key_that_cannot_be_looked_up(troubled: httpx.AsyncClient) -> None:
    answer = await troubled.get("/v1/models", headers=bearer("sk-qdesk-somebodys"))
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "5"
    error = answer.json()["error"]
    assert (error["code"], error["message"]) == ("storage_unavailable", "The database file cannot be opened.")


async def test_a_session_that_cannot_be_looked_up(troubled: httpx.AsyncClient) -> None:
    answer = await troubled.get("/", headers={"Cookie": "qdesk_session=somebodys", "Accept-Language": "zh"})
    assert answer.status_code == 503
    assert "目前无法保存或查询任何内容，请稍后再试。" in answer.text
