"""Answers from another server that speaks OpenAI's API: vLLM, TGI, llama.cpp, transformers serve, or a second Qdesk.

Streams server-sent events over a pool of connections; closing a stream closes its connection, which is how such servers
learn that nobody reads on. Knows nothing of queues: how many requests run at once is decided before they come here.
"""

import asyncio
import math
import re
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import httpx
from loguru import logger

from engine.backends.openai_wire import (
    EXTRAS,
    GO_ON,
    Answer,
    body_of,
    message_of,
    models_in,
    path_of,
    read_events,
    refusal,
)
from engine.errors import BackendFailed, NotReady
from engine.settings import Settings
from engine.types import ChatRequest, Event, Message, Progress, Report

CONNECT_S = 5.0
LIST_S = 10.0  # for the list of models
ASK_AGAIN_S = 5.0  # between two questions whether a server that failed is back
PAUSES_S = (0.1, 0.5)  # before the second and the third attempt to connect
CAPACITY = 256
AGAIN = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
OWN_CHOICE = ("auto", "packaged")  # values of QDESK_MODEL that name no model of another server


class RemoteBackend:
    """Raises EngineErrors that say whose fault it was; a server that fails is asked again when somebody wants to know.

    Prompt tokens are estimated until the server has counted them, since the tokenizer is over there.
    """

    def __init__(self, settings: Settings, *, ask_again_s: float = ASK_AGAIN_S) -> None:
        self.model = "" if settings.model in OWN_CHOICE else settings.model
        self.quantization, self.reason = "", ""
        self.context_tokens, self.capacity = settings.max_context_tokens, CAPACITY
        self._url = settings.openai_base_url.rstrip("/")
        self._named = self.model
        self._extras = True  # whether the server takes sampling values that OpenAI's API does not have
        self._trouble: str | None = "The other server has not been asked yet."
        self._asked_at_s, self._ask_again_s = -math.inf, ask_again_s
        self._asking: asyncio.Task[None] | None = None
        key = settings.openai_api_key.get_secret_value()
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(settings.request_timeout_s, connect=CONNECT_S, pool=CONNECT_S),
            limits=httpx.Limits(max_connections=CAPACITY + 8, max_keepalive_connections=32),
        )

    async def start(self, report: Report) -> None:
        """Ask which models there are. A server that is not up yet is no error here: `health` tells, and asks again."""
        report(Progress("asking the other server"))
        try:
            await self._ask()
        except _Unreachable as error:
            self._trouble = self.reason = str(error)
            logger.warning("{}", error)

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """An estimate that errs on the high side for Qwen2's tokenizer, and for others of the same kind.

        A token for every four ASCII letters or spaces (English has some five to a token) and one for a space before a
        number, one for every other character (each digit is one; Chinese has 0.5 to 0.7), and two for what lies beyond
        the basic plane (emoji). The frame that a chat template puts around a message takes up to eight.
        """
        return sum(8 + _estimate(message.content) for message in messages) + 8

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        begun = False
        for pause_s in (*PAUSES_S, None):
            try:
                async with aclosing(self._answer(request)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except (httpx.TransportError, httpx.StreamError, RuntimeError) as error:
                # RuntimeError is what a closed client raises.
                if begun or pause_s is None or not isinstance(error, AGAIN):
                    raise self._failed(error) from error
            await asyncio.sleep(pause_s)

    def health(self) -> str | None:
        if self._trouble and not self._client.is_closed:
            self._ask_again()
        return self._trouble

    async def stop(self) -> None:
        if self._asking:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        await self._client.aclose()
        self._trouble = "The connection to the other server is closed."

    # --- one answer ---

    async def _answer(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        answer = Answer(self.count_tokens(request.messages))
        response = await self._send(request)
        try:
            async with aclosing(read_events(response)) as events:
                async for data in events:
                    if data == "[DONE]":
                        break
                    for event in answer.take(data):
                        yield event
        finally:
            await response.aclose()
        yield answer.done()

    async def _send(self, request: ChatRequest) -> httpx.Response:
        """Send the request and return the open response, whose status is good."""
        body = body_of(request, self.model, extras=self._extras)
        message = self._client.build_request("POST", self._url + path_of(request), json=body)
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
        raise refusal(response, said)

    def _failed(self, error: Exception) -> BackendFailed:
        if not isinstance(error, httpx.ReadTimeout):  # a slow answer is no sign that the server is gone
            self._trouble = f"The other server at {self._url} cannot be reached ({_words(error)})."
        return BackendFailed(f"The connection to the other server failed ({_words(error)}); try again.")

    # --- is it there ---

    async def _ask(self) -> None:
        """Ask for the models and choose one. Raises NotReady for what a person must put right."""
        self._asked_at_s = time.monotonic()
        try:
            response = await self._client.get(f"{self._url}/models", timeout=LIST_S)
        except httpx.TransportError as error:
            raise _Unreachable(f"The other server at {self._url} cannot be reached ({_words(error)}).") from error
        if response.status_code >= 500 or response.status_code == 429:
            raise _Unreachable(f"The other server at {self._url} answers with status {response.status_code}.")
        if response.status_code in (401, 403):
            raise _unusable(f"The other server at {self._url} refuses the key; check QDESK_OPENAI_API_KEY.")
        self._choose(models_in(response), response.status_code)
        self._trouble = None

    def _choose(self, models: dict[str, dict[str, Any]], status: int) -> None:
        if not models and not self._named:
            raise _unusable(
                f"{self._url}/models lists no model (status {status}); check QDESK_OPENAI_BASE_URL, "
                "which goes up to and with /v1, or name the model with QDESK_MODEL."
            )
        if models and self._named and self._named not in models:
            raise _unusable(
                f"The other server has no model {self._named}; set QDESK_MODEL to one of: {', '.join(models)}."
            )
        self.model = self._named or next(iter(models))
        self.reason = f"Answers come from the server at {self._url}."
        limit = models.get(self.model, {}).get("max_model_len")  # vLLM says so
        if isinstance(limit, int) and limit > 0:
            self.context_tokens = min(self.context_tokens, limit)

    def _ask_again(self) -> None:
        """Look in the background whether the server is back, unless that was done a moment ago."""
        asking = self._asking is not None and not self._asking.done()
        if not asking and time.monotonic() - self._asked_at_s >= self._ask_again_s:
            self._asking = asyncio.create_task(self._find_out(), name="ask the other server")

    async def _find_out(self) -> None:
        try:
            await self._ask()
            logger.info("the other server answers again")
        except NotReady as error:
            self._trouble = str(error)


class _Unreachable(NotReady):
    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, code="engine_failed")


def _unusable(sentence: str) -> NotReady:
    return NotReady(sentence, code="engine_failed")


def _estimate(text: str) -> int:
    """Tokens of `text`; see RemoteBackend.count_tokens."""
    letters = len(re.findall(r"[A-Za-z\s]", text, re.ASCII))
    before_number = len(re.findall(r"\s\d", text))
    beyond = sum(character > "\uffff" for character in text)
    return math.ceil(letters / 4) + len(text) - letters + before_number + beyond


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
