"""One open chat page without a browser: the page as it is served, and its socket as NiceGUI's script speaks it.

Knows the composer's events and NiceGUI's packets, and nothing of what is shown; `on_frame` is given all that arrives.
"""

import asyncio
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from engine.types import new_id

CALL = re.compile(r"runMethod\((\d+), \"(\w+)\", (\[.*\])\)$", re.DOTALL)


class Page:
    """`await open()`, then `ask`, `until_answered`, `stop` and `open` again as often as wanted, and `close`."""

    def __init__(self, http: httpx.AsyncClient, session: str, on_frame: Callable[[str], None] = lambda frame: None):
        """`http` has the server's address; `session` is the cookie of somebody who has signed in."""
        self._http, self._cookie, self._on_frame = http, f"qdesk_session={session}", on_frame
        self._answers: dict[str, asyncio.Future[str]] = {}  # what becomes of a question, by its mark: "" is taken
        self._free, self._shown = asyncio.Event(), asyncio.Event()
        self._socket: ClientConnection | None = None
        self._listening: asyncio.Task[None] | None = None
        self.conversation = ""

    async def open(self, path: str = "/") -> None:
        """Load the page, as a click or F5 does, and wait until it shows its conversation."""
        await self.close()
        page = (await self._http.get(path, headers={"Cookie": self._cookie})).raise_for_status().text
        self._client = _found(r"'client_id': '([\w-]+)'", page)
        self._composer = int(_found(r'"(\d+)":\{"tag":"nicegui-composer"', page))
        self._listeners = {event: _listener(page, event) for event in ("ask", "stop")}
        query = f"client_id={self._client}&tab_id={new_id()}&document_id=d&next_message_id=0&implicit_handshake=true"
        address = str(self._http.base_url).replace("http", "ws", 1).rstrip("/") + "/_nicegui_ws/socket.io/"
        cookie = {"Cookie": self._cookie}
        self._socket = await connect(
            f"{address}?EIO=4&transport=websocket&{query}", additional_headers=cookie, open_timeout=120
        )
        await self._socket.recv()
        self._shown.clear()
        self._listening = asyncio.create_task(self._listen(self._socket))
        await self._socket.send("40")
        await self._shown.wait()

    async def ask(self, text: str) -> str:
        """Send a question; return "" when it is taken, else the sentence that refuses it."""
        mark = new_id()
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answers[mark] = answer
        asked = {"text": text, "files": [], "nonce": mark, "conversation": self.conversation}
        self._free.clear()
        await self._emit("ask", asked)
        return await answer

    async def stop(self) -> None:
        await self._emit("stop", {})

    async def until_answered(self) -> None:
        """Return when nothing of the conversation is being answered any more."""
        await self._free.wait()

    async def close(self) -> None:
        """Go away without a word, as a closed tab does."""
        if self._listening and self._socket:
            self._listening.cancel()
            with suppress(asyncio.CancelledError):
                await self._listening
            await self._socket.close()
            self._socket = self._listening = None

    async def _emit(self, event: str, fields: dict[str, Any]) -> None:
        assert self._socket is not None
        about = {"id": self._composer, "client_id": self._client, "listener_id": self._listeners[event]}
        await self._socket.send("42" + json.dumps(["event", {**about, "args": [json.dumps(fields)]}]))

    async def _listen(self, socket: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            async for packet in socket:
                text = str(packet)
                if text == "2":
                    await socket.send("3")
                elif text.startswith("42"):
                    self._heard(text)
        self._free.set()

    def _heard(self, packet: str) -> None:
        self._on_frame(packet)
        event, message = json.loads(packet[2:])[:2]
        called = CALL.search(message["code"]) if event == "run_javascript" else None
        if called is None or int(called[1]) != self._composer:
            return
        match called[2], json.loads(called[3]):
            case "taken", [mark, conversation]:
                self.conversation = conversation
                self._settle(mark, "")
            case "refused", [refusal]:
                self._settle(refusal["nonce"], refusal["text"])
                self._free.set()
            case "busy", [running]:
                self._mind(running)
            case "open", [place]:
                self.conversation = place["conversation"]
                self._mind(place["running"])
                self._shown.set()

    def _mind(self, running: bool) -> None:
        if running:
            self._free.clear()
        elif not self._answers:
            self._free.set()

    def _settle(self, mark: str, why: str) -> None:
        if answer := self._answers.pop(mark, None):
            answer.set_result(why)


def _found(pattern: str, page: str) -> str:
    found = re.search(pattern, page)
    assert found, f"{pattern} is not on the page"
    return found[1]


def _listener(page: str, event: str) -> str:
    """The id of the composer's listener for this event."""
    events = page[page.index('"tag":"nicegui-composer"') :]
    return _found(rf'"listener_id":"([\w-]+)","type":"{event}"', events)
