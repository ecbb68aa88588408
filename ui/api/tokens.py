"""POST /v1/tokenize and /v1/detokenize: the model's tokens, for programs that cut texts to size."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from nicegui import app
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from engine.backends import KnowsTokens
from engine.errors import InvalidRequest
from engine.types import Message
from ui.api.bodies import DetokenizeBody, TokenizeBody
from ui.api.calls import Calls
from ui.api.described import READING, Text, Tokens, reading, replies
from ui.api.errors import ApiError
from ui.api.openai import check_running_model
from ui.api.requests import messages_of, read
from ui.desk import Desk

LONGEST = 500_000  # characters; a text of so many takes up to a second of one core and 200 MB
AT_ONCE = 2

T = TypeVar("T")


def register(desk: Desk, calls: Calls) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def ask(work: Callable[[KnowsTokens], T]) -> T:
        desk.service.intake.check()
        backend = desk.service.backend
        if not isinstance(backend, KnowsTokens):
            message = "The tokenizer is at the other server; ask that one."
            raise ApiError(501, message, type="server_error", code="not_supported")
        async with room:
            return await asyncio.to_thread(work, backend)

    told = replies(Tokens, *READING, 501)

    @app.post("/v1/tokenize", tags=["tokens"], responses=told, openapi_extra=reading(TokenizeBody))
    async def tokenize(request: Request) -> Response:
        """The tokens of `prompt` as it is, or of `messages` with all that the chat template adds."""
        calls.rate.take(request.state.caller)
        body = await read(request, TokenizeBody)
        check_running_model(desk, body.model)
        asked = _messages(body)
        tokens = await ask(lambda backend: backend.tokenize(asked))
        return JSONResponse(
            {"tokens": tokens, "count": len(tokens), "max_model_len": desk.service.backend.context_tokens}
        )

    told = replies(Text, *READING, 501)

    @app.post("/v1/detokenize", tags=["tokens"], responses=told, openapi_extra=reading(DetokenizeBody))
    async def detokenize(request: Request) -> Response:
        """The text of `tokens`."""
        calls.rate.take(request.state.caller)
        body = await read(request, DetokenizeBody)
        check_running_model(desk, body.model)
        return JSONResponse({"prompt": await ask(lambda backend: backend.detokenize(body.tokens))})


def _messages(body: TokenizeBody) -> tuple[Message, ...]:
    if (body.prompt is None) == (body.messages is None):
        raise InvalidRequest("Give prompt or messages.", param="prompt")
    asked = (Message("text", body.prompt),) if body.prompt is not None else messages_of(body.messages or ())
    if (length := sum(len(message.content) for message in asked)) > LONGEST:
        raise InvalidRequest(f"The text has {length} characters, and may have {LONGEST}; cut it first.", param="prompt")
    return asked
