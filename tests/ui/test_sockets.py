"""The pages' socket: a client_id is no credential, another site's page gets nothing, and a session's end is felt."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.server import RunningServer, eventually, form_token


def page_of(browser: httpx.Client) -> str:
    """Open a page and return its client_id."""
    found = re.search(r"'client_id': '([\w-]+)'", browser.get("/account").text)
    assert found
    return found[1]


@asynccontextmanager
async def socket(
    server: RunningServer, browser: httpx.Client, client_id: str = "", **headers: str
) -> AsyncIterator[ClientConnection]:
    """A Socket.IO connection as the browser makes it, with this browser's session cookie."""
    query = "EIO=4&transport=websocket"
    if client_id:
        query += f"&client_id={client_id}&tab_id=t&document_id=d&next_message_id=0&implicit_handshake=true"
    address = f"{server.url.replace('http', 'ws')}/_nicegui_ws/socket.io/?{query}"
    session = browser.cookies.get("qdesk_session")
    cookies = {"Cookie": f"qdesk_session={session}"} if session else {}
    async with connect(address, additional_headers={**cookies, **headers}) as connection:
        assert str(await connection.recv()).startswith("0{")
        await connection.send("40")
        yield connection


async def heard(connection: ClientConnection, start: str) -> Any:
    """The next packet of this kind; others (pings, updates) are passed over."""
    while not (packet := str(await connection.recv())).startswith(start):
        pass
    return json.loads(packet.removeprefix(start))


async def handshake(connection: ClientConnection, client_id: str) -> bool:
    about = {"client_id": client_id, "tab_id": "t", "document_id": "d", "next_message_id": 0}
    await connection.send("420" + json.dumps(["handshake", about]))
    (accepted,) = await heard(connection, "430")
    return bool(accepted)


async def test_ones_own_page_gets_its_socket(server: RunningServer) -> None:
    with server.sign_in("ada") as ada:
        async with socket(server, ada, page_of(ada), Origin=server.url) as connection:
            assert "sid" in await heard(connection, "40")
        async with socket(server, ada) as connection:
            assert await handshake(connection, page_of(ada))


async def test_a_socket_without_a_session_is_refused(server: RunningServer) -> None:
    with server.sign_in("ada") as ada, httpx.Client() as stranger, pytest.raises(InvalidStatus) as refused:
        async with socket(server, stranger, page_of(ada)):
            pass
    assert refused.value.response.status_code == 403


async def test_another_sites_page_is_refused(server: RunningServer) -> None:
    with server.sign_in("ada") as ada, pytest.raises(InvalidStatus) as refused:
        async with socket(server, ada, page_of(ada), Origin="https://elsewhere.example"):
            pass
    assert refused.value.response.status_code == 403


async def test_a_colleagues_page_cannot_be_joined(server: RunningServer) -> None:
    with server.sign_in("ada") as ada, server.sign_in("bob") as bob:
        page = page_of(ada)
        async with socket(server, bob, page) as connection:
            assert "message" in await heard(connection, "44")  # a refused connection
        async with socket(server, bob) as connection:
            assert not await handshake(connection, page)


async def test_a_colleagues_page_cannot_be_driven(server: RunningServer) -> None:
    """Ada's page is open; Bob knows its client_id and sends events to it."""
    with server.sign_in("ada") as ada, server.sign_in("bob") as bob:
        page = page_of(ada)
        async with socket(server, ada, page) as own, socket(server, bob, page_of(bob)) as foreign:
            await heard(own, "40")
            await heard(foreign, "40")
            before = server.output().count("a socket spoke for a page that is not its own")
            for event in ("event", "javascript_response", "ack"):
                await foreign.send("42" + json.dumps([event, {"client_id": page, "id": 0, "listener_id": "x"}]))
            told = "a socket spoke for a page that is not its own"
            eventually(lambda: server.output().count(told) == before + 3)


async def test_an_open_page_is_sent_away_when_its_session_ends(server: RunningServer) -> None:
    with server.sign_in("ada") as ada:
        page = page_of(ada)
        async with socket(server, ada, page) as connection:
            await heard(connection, "40")
            ada.post("/logout", data={"form_token": form_token(ada.get("/account").text)})
            while "/login?ended=signed-out&next=" not in json.dumps(await heard(connection, "42")):
                pass
            before = server.output().count("no longer")
            await connection.send("42" + json.dumps(["event", {"client_id": page, "id": 0, "args": []}]))
            eventually(lambda: server.output().count("no longer") == before + 1)


async def test_an_account_that_was_disabled_in_the_database_is_out_soon(server: RunningServer) -> None:
    """The admin page tells the server at once; this is for what nobody tells it. No other test knows Eve."""
    with server.sign_in("eve") as eve:
        async with socket(server, eve, page_of(eve)) as connection:
            await heard(connection, "40")
            server.change("update users set disabled = 1 where name = 'eve'")
            while "/login?ended=disabled&next=" not in json.dumps(await heard(connection, "42")):
                pass
        answer = eve.get("/account")
        assert (answer.status_code, answer.headers["location"]) == (303, "/login?ended=signed-out&next=/account")


async def test_nonsense_on_the_socket_does_no_harm(server: RunningServer) -> None:
    with server.sign_in("ada") as ada:
        async with socket(server, ada, page_of(ada)) as connection:
            await heard(connection, "40")
            for event in (["event"], ["event", None], ["event", []], ["event", {"client_id": []}], ["handshake", "x"]):
                await connection.send("42" + json.dumps(event))
        async with socket(server, ada) as connection:
            assert await handshake(connection, page_of(ada))
