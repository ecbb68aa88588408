"""Answers from other servers that speak OpenAI's API: vLLM, TGI, llama.cpp, transformers serve, or a second Qdesk.

Streams server-sent events over a pool of connections; closing a stream closes its connection, which is how such servers
learn that nobody reads on. Of several servers the one with the fewest open answers is asked; one that is gone is left
out until it is back. Knows nothing of queues: how many requests run at once is decided before they come here.
"""

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx
from loguru import logger

from engine.backends.endpoint import Endpoint
from engine.backends.openai_wire import Answer, read_events
from engine.errors import BackendFailed, QueueFull
from engine.settings import Settings
from engine.types import ChatRequest, Event, Message, Progress, Report

CONNECT_S = 5.0
LINGER_S = 0.2  # for the end of a response whose answer is complete
ASK_AGAIN_S = 5.0  # between two questions whether a server that failed is back
PAUSES_S = (0.1, 0.5)  # before a server is tried for the second and the third time
CAPACITY = 256
AGAIN = (httpx.ConnectError, httpx.ConnectTimeout, httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError)
LETTER, BEFORE_NUMBER, BEYOND = re.compile(r"[A-Za-z\s]", re.ASCII), re.compile(r"\s\d"), re.compile(r"[^\0-\uffff]")
PIECE = 50_000  # characters that are looked at without a pause, which takes milliseconds
OWN_CHOICE = ("auto", "packaged")  # values of QDESK_MODEL that name no model of another server


class RemoteBackend:
    """Raises EngineErrors that say whose fault it was; a server that fails is asked again when somebody wants to know.

    Prompt tokens are estimated until the server has counted them, since the tokenizer is over there.
    """

    quantization, capacity = "", CAPACITY

    def __init__(self, settings: Settings, *, ask_again_s: float = ASK_AGAIN_S) -> None:
        named = "" if settings.model in OWN_CHOICE else settings.model
        key = settings.openai_api_key.get_secret_value()
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx.Timeout(settings.request_timeout_s, connect=CONNECT_S, pool=CONNECT_S),
            limits=httpx.Limits(max_connections=CAPACITY + 8, max_keepalive_connections=32),
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # what one answer sets is not the next one's
        )
        self._servers = [
            Endpoint(url, self._client, model=named, ask_again_s=ask_again_s) for url in settings.openai_base_urls
        ]
        self._most_context_tokens = settings.max_context_tokens

    @property
    def model(self) -> str:
        """The first server's that has one: the servers are meant to have the same."""
        return next((server.model for server in self._servers if server.model), "")

    @property
    def reason(self) -> str:
        there = [server.url for server in self._servers if not server.trouble]
        if not there:
            return self._servers[0].trouble or ""
        if len(there) == 1:
            return f"Answers come from the server at {there[0]}."
        return f"Answers come from the servers at {' and '.join(there)}."

    @property
    def context_tokens(self) -> int:
        told = [server.context_tokens for server in self._servers if server.context_tokens]
        return min(self._most_context_tokens, *told) if told else self._most_context_tokens

    async def start(self, report: Report) -> None:
        """Ask which models there are. A server that is not up yet is no error here: `health` tells, and asks again."""
        report(Progress("asking the other server"))
        await asyncio.gather(*(server.ask() for server in self._servers))
        for server in self._servers:
            if server.trouble:
                logger.warning("{}", server.trouble)

    def count_tokens(self, messages: Sequence[Message]) -> int:
        """An estimate that errs on the high side for Qwen2's tokenizer, and for others of the same kind.

        A token for every four ASCII letters or spaces (English has some five to a token) and one for a space before a
        number, one for every other character (each digit is one; Chinese has 0.5 to 0.7), and two for what lies beyond
        the basic plane (emoji). The frame that a chat template puts around a message takes up to eight.

        A text is read piece by piece, since nothing else goes on meanwhile, and only as far as to twice the context.
        """
        size = sum(len(message.content) for message in messages)
        seen, read = 8, 0
        for message in messages:
            seen += 8
            for begin in range(0, len(message.content), PIECE):
                end = min(begin + PIECE, len(message.content))
                seen, read = seen + _estimate(message.content, begin, end), read + end - begin
                if seen > 2 * self.context_tokens:
                    return seen * size // read
        return seen

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Event, None]:
        begun, tried = False, list[Endpoint]()
        while True:
            tried.append(server := self._least_busy(tried))
            try:
                async with aclosing(self._answer(server, request)) as events:
                    async for event in events:
                        begun = True
                        yield event
                return
            except (httpx.TransportError, httpx.StreamError, RuntimeError) as error:
                # RuntimeError is what a closed client raises.
                failed = server.broke(error)
                if begun or not isinstance(error, AGAIN) or not self._may_try_again(tried):
                    raise failed from error
            except (QueueFull, BackendFailed):
                if begun or all(other in tried or other.trouble for other in self._servers):
                    raise
            await asyncio.sleep(self._pause_s(tried))

    def health(self) -> str | None:
        """One server that is there is enough. Those that are not are looked for."""
        if self._client.is_closed:
            return "The connection to the other server is closed."
        troubled = [server for server in self._servers if server.trouble]
        for server in troubled:
            server.ask_again()
        return troubled[0].trouble if len(troubled) == len(self._servers) else None

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop_asking() for server in self._servers))
        await self._client.aclose()

    async def _answer(self, server: Endpoint, request: ChatRequest) -> AsyncGenerator[Event, None]:
        answer = Answer(self.count_tokens(request.messages))
        async with server.answering(request) as response, aclosing(read_events(response)) as events:
            async for data in events:
                if data == "[DONE]":
                    await _read_to_the_end(events)
                    break
                for event in answer.take(data):
                    yield event
        yield answer.done()

    # --- which of the servers ---

    def _least_busy(self, tried: list[Endpoint]) -> Endpoint:
        """Those that are there go before those that are not, then those that were not tried, then the least busy."""
        return min(self._servers, key=lambda server: (bool(server.trouble), tried.count(server), server.answers))

    def _may_try_again(self, tried: list[Endpoint]) -> bool:
        return len(tried) < max(len(self._servers), len(PAUSES_S) + 1)

    def _pause_s(self, tried: list[Endpoint]) -> float:
        """None before a server that was not tried yet."""
        again = len(tried) - len(self._servers)
        return PAUSES_S[again] if again >= 0 else 0


async def _read_to_the_end(events: AsyncGenerator[str, None]) -> None:
    """Nothing follows but the end of the response, and only then is its connection free for the next question."""
    with suppress(TimeoutError, httpx.TransportError):
        async with asyncio.timeout(LINGER_S):
            async for _ in events:
                pass


def _estimate(text: str, begin: int, end: int) -> int:
    """Tokens of this piece of `text`; see RemoteBackend.count_tokens."""
    letters = len(LETTER.findall(text, begin, end))
    before_number = len(BEFORE_NUMBER.findall(text, begin, end + 1))
    beyond = len(BEYOND.findall(text, begin, end))
    return math.ceil(letters / 4) + end - begin - letters + before_number + beyond
