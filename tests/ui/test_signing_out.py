"""A session's end while an answer is on its way: the page is sent away, and its socket hears nothing more."""

import asyncio
import json
import re
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from tests.server import RunningServer, eventually, form_token
from tests.ui.test_sockets import socket


def chat_page(browser: httpx.Client) -> tuple[str, int, str]:
    """Open the chat page: its client_id, and the composer's element and listener for `ask`."""
    page = browser.get("/").text
    client_id = re.search(r"'client_id': '([\w-]+)'", page)
    elements = re.search(r"parseElements\(String\.raw`(.*?)`\)", page, re.DOTALL)
    assert client_id
    assert elements
    for id, element in json.loads(re.sub(r"&(#\d+|\w+);", "?", elements[1])).items():
        for event in element.get("events") or []:
            if event["type"] == "ask":
                return client_id[1], int(id), event["listener_id"]
    raise AssertionError(page)


async def packets_until_silence(connection: ClientConnection, seconds: float) -> list[str]:
    heard: list[str] = []
    try:
        async with asyncio.timeout(seconds):
            while True:
                heard.append(str(await connection.recv()))
    except (TimeoutError, ConnectionClosed):
        return heard


async def test_the_socket_of_a_page_that_was_signed_out_hears_no_more(server: RunningServer) -> None:
    with server.sign_in("ada") as browser:
        client_id, element, listener = chat_page(browser)
        async with socket(server, browser, client_id) as connection:
            await packets_until_silence(connection, 1)
            args = [json.dumps({"text": "long to be signed out of", "nonce": "n", "conversation": ""})]
            event: dict[str, Any] = {"client_id": client_id, "id": element, "listener_id": listener, "args": args}
            await connection.send("42" + json.dumps(["event", event]))
            heard = await packets_until_silence(connection, 2)
            assert "word2" in "".join(heard)
            token = form_token(browser.get("/account").text)
            assert browser.post("/logout", data={"form_token": token}).status_code == 303
            told = await packets_until_silence(connection, 3)
            assert "/login" in "".join(told)
            assert "word" not in "".join(await packets_until_silence(connection, 2))
    statuses = "select status from exchanges where prompt = 'long to be signed out of'"
    assert server.rows(statuses) == [("running",)]  # it goes on for those who sign in again in time
    server.change("update users set disabled = 1 where name = 'ada'")
    eventually(lambda: server.rows(statuses) == [("cancelled",)])
    server.change("update users set disabled = 0 where name = 'ada'")
