"""What administrators set, over stops and starts of the real server: pressed on /admin/steer, felt by others."""

import html
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection

from tests.databases import new_database
from tests.server import RunningServer, bearer, eventually, key_of, running_server
from tests.ui.test_sockets import heard, socket

WORDS, BANNER = "Back at noon. 系统维护", "Tonight: maintenance"


class Steering:
    """An open /admin/steer without a browser: its fields and buttons by their labels."""

    def __init__(self, page: str, connection: ClientConnection | None = None) -> None:
        raw = re.search(r"parseElements\(String\.raw`(.*?)`\)", page, re.DOTALL)
        client_id = re.search(r"'client_id': '([\w-]+)'", page)
        assert raw
        assert client_id
        self.client_id, self._connection = client_id[1], connection
        found: dict[str, dict[str, Any]] = json.loads(html.unescape(raw[1]))
        self._elements = {
            element["props"]["label"]: {**element, "id": int(id)}
            for id, element in found.items()
            if "label" in element.get("props", {})
        }

    def value(self, label: str) -> object:
        props = self._elements[label]["props"]
        return props.get("value", props.get("model-value"))

    async def write(self, label: str, value: object) -> None:
        await self._emit(label, "update:", value)

    async def choose(self, label: str, option: str) -> None:
        known = self._elements[label]["props"]["options"]
        await self.write(label, next(each for each in known if each["label"] == option))

    async def press(self, label: str, *, until: str) -> None:
        """Press a button, and wait until this text comes to the page."""
        assert self._connection
        await self._emit(label, "click")
        while until not in str(await self._connection.recv()):
            pass

    async def _emit(self, label: str, event: str, *args: object) -> None:
        assert self._connection
        element = self._elements[label]
        listener = next(each["listener_id"] for each in element["events"] if each["type"].startswith(event))
        about = {"client_id": self.client_id, "id": element["id"], "listener_id": listener}
        await self._connection.send(
            "42" + json.dumps(["event", {**about, "args": [json.dumps(each) for each in args]}])
        )


def steer_page(browser: httpx.Client) -> str:
    return browser.get("/admin/steer").text


@asynccontextmanager
async def steering(server: RunningServer, browser: httpx.Client) -> AsyncIterator[Steering]:
    page = steer_page(browser)
    async with socket(server, browser, Steering(page).client_id) as connection:
        await heard(connection, "40")
        yield Steering(page, connection)


def asked(server: RunningServer) -> dict[str, Any]:
    question = {"messages": [{"role": "user", "content": "long"}]}
    answer = httpx.post(server.url + "/v1/chat/completions", json=question, headers=bearer(key_of("ada")), timeout=60)
    told: dict[str, Any] = answer.json()
    return told


def banner_hangs(server: RunningServer) -> bool:
    """As loud as it was, and with its end."""
    page = httpx.get(server.url + "/login").text
    return f'class="notice warn" role="status">{BANNER}<br><small>until ' in page


async def test_what_administrators_set_outlives_the_server_and_a_drain_does_not(tmp_path: Path) -> None:
    new_database(tmp_path / "qdesk.db", {"chief": "admin", "ada": "staff"})
    with running_server(tmp_path) as server, server.sign_in("chief") as chief:
        session = chief.cookies["qdesk_session"]
        async with steering(server, chief) as page:
            await page.write("What people read meanwhile", WORDS)
            await page.press("Pause", until="New requests are refused.")
            await page.write("Running at once", 3)
            await page.write("Tokens of one answer", 20)
            await page.press("Change the limits…", until="Running at once 10")  # what would change, for whom
            await page.press("Apply", until="The limits are changed.")
            await page.write("Text", BANNER)
            await page.choose("Level", "Warning")
            await page.choose("For how long", "4 hours")
            await page.press("Show it", until=BANNER)
        eventually(lambda: banner_hangs(server))  # the field may have said its words back before

    with running_server(tmp_path, ready=False) as server, httpx.Client(base_url=server.url) as chief:
        eventually(lambda: chief.get("/readyz").json()["status"] == "paused")
        refused = asked(server)["error"]
        assert (refused["code"], refused["message"]) == ("paused", WORDS)
        assert banner_hangs(server)
        chief.cookies["qdesk_session"] = session  # who was signed in still is
        async with steering(server, chief) as page:
            assert (page.value("Running at once"), page.value("Tokens of one answer")) == ("3", "20")
            assert (page.value("What people read meanwhile"), page.value("Text")) == (WORDS, BANNER)
            await page.press("Drain", until="The server is drained")
        assert asked(server)["error"]["code"] == "draining"

    with running_server(tmp_path) as server:  # who drains wants a start that takes requests
        told = asked(server)
        assert (told["choices"][0]["finish_reason"], told["usage"]["completion_tokens"]) == ("length", 20)
        assert banner_hangs(server)
