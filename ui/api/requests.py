"""What programs send, checked: bytes -> a pydantic model -> ChatRequest. Unknown fields are ignored.

Whatever is wrong raises ApiError or InvalidRequest naming the part: broken JSON, wrong types, NaN, depth, size. Knows
nothing of the service.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from engine.errors import InvalidRequest
from engine.types import Message, Role, Sampling
from ui.api.errors import ApiError

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_MESSAGES = 10_000


class _Body(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class TextPart(_Body):
    type: Literal["text"]
    text: str


class OtherPart(_Body):
    type: str


class ChatMessage(_Body):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart | OtherPart]


class StreamOptions(_Body):
    include_usage: bool | None = None


class ResponseFormat(_Body):
    type: str


class ChatBody(_Body):
    """The body of POST /v1/chat/completions: OpenAI's, as far as this server can keep it."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    model: str | None = Field(None, description="The running model's name, or `default`.")
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = Field(None, description="The same as max_tokens, and goes before it.")
    temperature: float | None = Field(None, description="0 (greedy) to 2.")
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    ignore_eos: bool | None = None
    n: int | None = Field(None, description="Only 1.")
    response_format: ResponseFormat | None = Field(None, description='Only {"type": "text"}.')
    tools: list[Any] | None = Field(None, description="Not supported.")


class SimpleBody(_Body):
    """The body of POST /."""

    prompt: str
    stream: bool | None = False
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None


AnyBody = TypeVar("AnyBody", bound=_Body)


async def read(request: Request, shape: type[AnyBody]) -> AnyBody:
    """The request's body in this shape. Raises ApiError 400 naming the part, or 413."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            megabytes = MAX_BODY_BYTES // 1024**2
            raise ApiError(413, f"The body is larger than {megabytes} MiB.", code="request_too_large")
    return parse(bytes(body), shape)


def parse(body: bytes | str, shape: type[AnyBody]) -> AnyBody:
    try:
        return shape.model_validate_json(body)
    except ValidationError as invalid:
        raise _told(invalid) from None


def messages_of(body: ChatBody) -> tuple[Message, ...]:
    """The messages as the engine takes them: text parts joined, `developer` as `system`."""
    return tuple(Message(_role(message.role), _text(message, at)) for at, message in enumerate(body.messages))


def sampling_of(body: ChatBody | SimpleBody) -> Sampling:
    """The sampling values that are given; the others keep their defaults. Raises InvalidRequest."""
    names = ("temperature", "top_p", "top_k", "repetition_penalty", "seed", "ignore_eos")
    given = {name: value for name in names if (value := getattr(body, name, None)) is not None}
    return Sampling(**given, max_tokens=_max_tokens(body), stop=_stop(body))


def _max_tokens(body: ChatBody | SimpleBody) -> int | None:
    newer = body.max_completion_tokens if isinstance(body, ChatBody) else None
    return body.max_tokens if newer is None else newer


def _stop(body: ChatBody | SimpleBody) -> tuple[str, ...]:
    stop = body.stop if isinstance(body, ChatBody) else None
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def check_supported(body: ChatBody) -> None:
    """Raise InvalidRequest for what this server cannot do, rather than answer something else than was asked."""
    if body.n not in (None, 1):
        raise InvalidRequest(f"n is {body.n}; this server gives one answer to a request.", param="n")
    if body.tools:
        raise InvalidRequest("tools are not supported by this server.", param="tools")
    if body.response_format is not None and body.response_format.type != "text":
        raise InvalidRequest("response_format is not supported, except text.", param="response_format")


def check_model(name: str | None, running: str) -> None:
    """Raise ApiError 404 unless the running model is meant."""
    if name not in (None, "", "default", running):
        shown = name if len(str(name)) <= 100 else f"{str(name)[:100]}..."
        message = f"There is no model {shown!r} here. Running: {running} (or say `default`)."
        raise ApiError(404, message, param="model", code="model_not_found")


def _role(role: str) -> Role:
    match role:
        case "system" | "developer":
            return "system"
        case "assistant":
            return "assistant"
        case _:
            return "user"


def _text(message: ChatMessage, at: int) -> str:
    if isinstance(message.content, str):
        return message.content
    texts = []
    for number, part in enumerate(message.content):
        if not isinstance(part, TextPart):
            where = f"messages[{at}].content[{number}]"
            raise InvalidRequest(f"{where} is of type {part.type[:40]!r}; this model reads text only.", param=where)
        texts.append(part.text)
    return "".join(texts)


def _told(invalid: ValidationError) -> ApiError:
    first = invalid.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return ApiError(400, f"The body is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}.")
    where = _place(first["loc"])
    what = "is missing" if first["type"] == "missing" else first["msg"][0].lower() + first["msg"][1:]
    return ApiError(400, f"{where or 'The body'}: {what}.", param=where or None)


def _place(loc: tuple[int | str, ...]) -> str:
    """`messages[0].role` for ("messages", 0, "role"); the names of union members, which are types, are left out."""
    place = ""
    for step in loc:
        if isinstance(step, int):
            place += f"[{step}]"
        elif step[:1].islower() and step not in ("str", "int", "float", "bool") and "[" not in step:
            place += f".{step}" if place else step
    return place
