"""One other server that speaks OpenAI's API: where it is, whether it is there, and how many answers it is giving.

Knows nothing of the other servers beside it, and retries nothing: which server is asked, and how often, is decided by
whoever has several of them (`engine/backends/remote.py`).
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from loguru import logger

from engine.backends.openai_wire import EXTRAS, GO_ON, body_of, message_of, models_in, path_of, refusal
from engine.errors import BackendFailed, NotReady
from engine.types import ChatRequest

LIST_S = 10.0  # for the list of models


class Endpoint:
    """`trouble` is why it cannot be asked, in one sentence, or None; `answers` is how many of its answers are open."""

    def __init__(self, url: str, client: httpx.AsyncClient, *, model: str, ask_again_s: float) -> None:
        """`model` is the one to use, "" the first that the server lists; `ask_again_s` is between two looks at it."""
        self.url, self.model = url.rstrip("/"), model
        self.context_tokens: int | None = None  # None: the server does not say
        self.trouble: str | None = "The other server has not been asked yet."
        self.answers = 0
        self._client, self._named = client, model
        self._extras = True  # whether the server takes sampling values that OpenAI's API does not have
        self._top_p_1 = True  # whether it takes a top_p of 1; to TGI that is an error, and none means the same
        self._asked_at_s, self._ask_again_s = -math.inf, ask_again_s
        self._asking: asyncio.Task[None] | None = None

    async def ask(self) -> None:
        """Ask which models there are. A server that is not up yet is no error: `trouble` says so.

        Raises NotReady for what a person must put right.
        """
        self._asked_at_s = time.monotonic()
        try:
            response = await self._client.get(f"{self.url}/models", timeout=LIST_S)
        except httpx.TransportError as error:
            self.trouble = f"The other server at {self.url} cannot be reached ({_words(error)})."
            return
        if response.status_code >= 500 or response.status_code == 429:
            self.trouble = f"The other server at {self.url} answers with status {response.status_code}."
            return
        if response.status_code in (401, 403):
            raise _unusable(f"The other server at {self.url} refuses the key; check QDESK_OPENAI_API_KEY.")
        self._choose(models_in(response), response.status_code)
        self.trouble = None

    def ask_again(self) -> None:
        """Look in the background whether the server is back, unless that was done a moment ago."""
        asking = self._asking is not None and not self._asking.done()
        if not asking and time.monotonic() - self._asked_at_s >= self._ask_again_s:
            self._asking = asyncio.create_task(self._find_out(), name=f"ask {self.url}")

    async def stop_asking(self) -> None:
        if self._asking:
            self._asking.cancel()
            await asyncio.wait([self._asking])

    @asynccontextmanager
    async def answering(self, request: ChatRequest) -> AsyncIterator[httpx.Response]:
        """Send a request; in the block is the open response, whose status is good. Raises EngineError and httpx's."""
        self.answers += 1
        try:
            response = await self._send(request)
            self.trouble = None
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            self.answers -= 1

    def broke(self, error: Exception) -> BackendFailed:
        """What to tell of a connection that failed. The server is out until it is found to be back."""
        if isinstance(error, httpx.ReadTimeout):  # a slow answer is no sign that the server is gone
            return BackendFailed("The other server has said nothing for too long; try again.")
        self.trouble = f"The other server at {self.url} cannot be reached ({_words(error)})."
        return BackendFailed(f"The connection to the other server failed ({_words(error)}); try again.")

    async def _send(self, request: ChatRequest) -> httpx.Response:
        body = body_of(request, self.model, extras=self._extras)
        if body["top_p"] == 1 and not self._top_p_1:
            del body["top_p"]
        message = self._client.build_request("POST", self.url + path_of(request), json=body)
        response = await self._client.send(message, stream=True)
        if response.status_code == httpx.codes.OK:
            return response
        try:
            said = message_of(await response.aread())
        finally:
            await response.aclose()
        if self._extras and response.status_code in (400, 422) and any(name in said for name in (*EXTRAS, *GO_ON)):
            self._extras = False
            return await self._send(request)
        if body.get("top_p") == 1 and response.status_code in (400, 422) and "top_p" in said:
            self._top_p_1 = False
            return await self._send(request)
        raise refusal(response, said)

    def _choose(self, models: dict[str, dict[str, Any]], status: int) -> None:
        if not models and not self._named:
            raise _unusable(
                f"{self.url}/models lists no model (status {status}); check QDESK_OPENAI_BASE_URL, "
                "which goes up to and with /v1, or name the model with QDESK_MODEL."
            )
        if models and self._named and self._named not in models:
            raise _unusable(
                f"The other server at {self.url} has no model {self._named}; "
                f"set QDESK_MODEL to one of: {', '.join(models)}."
            )
        self.model = self._named or next(iter(models))
        limit = models.get(self.model, {}).get("max_model_len")  # vLLM says so
        self.context_tokens = limit if isinstance(limit, int) and limit > 0 else None

    async def _find_out(self) -> None:
        try:
            await self.ask()
        except NotReady as error:
            self.trouble = str(error)
        if self.trouble is None:
            logger.info("the other server at {} answers again", self.url)


def _unusable(sentence: str) -> NotReady:
    return NotReady(sentence, code="engine_failed")


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
