"""What programs send, checked: bytes -> one of ui/api/bodies.py -> ChatRequests.

Whatever is wrong raises ApiError or InvalidRequest naming the part: broken JSON, wrong types, NaN, depth, size, what
this server cannot keep. Knows nothing of the service.
"""

import json
from collections.abc import Sequence
from typing import TypeVar

from pydantic import ValidationError
from starlette.requests import Request

from engine.errors import InvalidRequest
from engine.types import ChatRequest, Message, Role, Sampling, new_id
from ui.api.bodies import MAX_CHOICES, Body, ChatBody, ChatMessage, CompletionBody, Drawing, SimpleBody, TextPart
from ui.api.errors import ApiError
from ui.auth import Caller

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_BRACKETS = 100_000  # that open a list or an object, those in texts included: each may become an object of 10 µs
PENALTIES = ("repetition_penalty", "frequency_penalty", "presence_penalty")
SAME_NAME = ("temperature", "top_p", "top_k", *PENALTIES, "seed", "ignore_eos")
REFUSED = {  # unless empty, with what to do instead
    "tools": "; for an answer as JSON of a schema there is response_format",
    "functions": "; for an answer as JSON of a schema there is response_format",
    "function_call": "",
    "audio": "",
    "logit_bias": "",
    "suffix": "",
}
ANY_OBJECT = '{"type": "object"}'

AnyBody = TypeVar("AnyBody", bound=Body)


async def read(request: Request, shape: type[AnyBody]) -> AnyBody:
    """The request's body in this shape. Raises ApiError 400 naming the part, or 413."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise too_large()
    return parse(bytes(body), shape)


def too_large() -> ApiError:
    return ApiError(413, f"The body is larger than {MAX_BODY_BYTES // 1024**2} MiB.", code="request_too_large")


def parse(body: bytes | str, shape: type[AnyBody]) -> AnyBody:
    brackets = body.count("{") + body.count("[") if isinstance(body, str) else body.count(b"{") + body.count(b"[")
    if brackets > MAX_BRACKETS:
        raise ApiError(413, f"The body has {brackets} brackets, and may have {MAX_BRACKETS}.", code="request_too_large")
    try:
        return shape.model_validate_json(body)
    except ValidationError as invalid:
        raise _told(invalid) from None


def requests_of(body: Drawing, prompts: Sequence[Sequence[Message]], caller: Caller, id: str) -> list[ChatRequest]:
    """One request for each choice of each prompt; the first has this id. Raises InvalidRequest."""
    check_supported(body)
    choices = body.n or 1
    if len(prompts) * choices > MAX_CHOICES:
        raise InvalidRequest(
            f"prompt has {len(prompts)} texts; with n that is more than {MAX_CHOICES}.", param="prompt"
        )
    return [
        ChatRequest(
            messages=tuple(messages),
            sampling=sampling_of(body, choice),
            person=caller.person,
            source="api",
            id=id if number == choice == 0 else new_id(),
            end_user=body.user or "",
            metadata=tuple((body.metadata or {}).items()),
        )
        for number, messages in enumerate(prompts)
        for choice in range(choices)
    ]


def messages_of(given: Sequence[ChatMessage]) -> tuple[Message, ...]:
    """The messages as the engine takes them: text parts joined, `developer` as `system`."""
    return tuple(Message(_role(message.role), _text(message, at)) for at, message in enumerate(given))


def prompts_of(body: CompletionBody) -> list[tuple[Message]]:
    """Each text by itself. Raises InvalidRequest for tokens."""
    texts = [body.prompt] if isinstance(body.prompt, str) else body.prompt
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise InvalidRequest("prompt is a text or a list of texts that are not empty; not tokens.", param="prompt")
    return [(Message("text", str(text)),) for text in texts]


def sampling_of(body: Drawing | SimpleBody, choice: int = 0) -> Sampling:
    """The sampling values that are given; the others keep their defaults. Raises InvalidRequest."""
    given = {name: value for name in SAME_NAME if (value := getattr(body, name, None)) is not None}
    if "seed" in given:
        given["seed"] += choice
    if isinstance(body, SimpleBody):
        return Sampling(**given, max_tokens=body.max_tokens)
    return Sampling(
        **given,
        max_tokens=_max_tokens(body),
        stop=_stop(body.stop),
        logprobs=_logprobs(body),
        json_schema=_json_schema(body),
    )


def check_supported(body: Drawing) -> None:
    """Raise InvalidRequest for what this server cannot do, rather than answer something else than was asked."""
    for name, instead in REFUSED.items():
        if getattr(body, name, None):
            raise InvalidRequest(f"{name} is not supported by this server{instead}.", param=name)
    if getattr(body, "tool_choice", None) not in (None, "none", "auto"):
        raise InvalidRequest("tool_choice is not supported by this server, as tools are not.", param="tool_choice")
    if set(getattr(body, "modalities", None) or ()) - {"text"}:
        raise InvalidRequest("modalities: this model writes text only.", param="modalities")
    if (getattr(body, "best_of", None) or body.n or 1) != (body.n or 1):
        raise InvalidRequest("best_of is not supported, except the same as n.", param="best_of")


def check_model(name: str | None, running: str) -> None:
    """Raise ApiError 404 unless the running model is meant."""
    if name not in (None, "", "default", running):
        shown = name if len(str(name)) <= 100 else f"{str(name)[:100]}..."
        message = f"There is no model {shown!r} here. Running: {running} (or say `default`)."
        raise ApiError(404, message, param="model", code="model_not_found")


def _max_tokens(body: Drawing) -> int | None:
    newer = body.max_completion_tokens if isinstance(body, ChatBody) else None
    if newer is not None and newer < 1:
        raise InvalidRequest(f"max_completion_tokens is {newer}; it must be 1 or more.", param="max_completion_tokens")
    return body.max_tokens if newer is None else newer


def _stop(stop: str | list[str] | None) -> tuple[str, ...]:
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def _logprobs(body: Drawing) -> int | None:
    if isinstance(body, CompletionBody):
        if body.logprobs is not None and not 0 <= body.logprobs <= 20:
            raise InvalidRequest(f"logprobs is {body.logprobs}; it must be from 0 to 20.", param="logprobs")
        return body.logprobs
    if not isinstance(body, ChatBody):
        return None
    if body.top_logprobs is not None and not body.logprobs:
        raise InvalidRequest("top_logprobs needs logprobs to be true.", param="top_logprobs")
    return (body.top_logprobs or 0) if body.logprobs else None


def _json_schema(body: Drawing) -> str | None:
    match body.response_format.type if body.response_format else "text":
        case "json_object":
            return ANY_OBJECT
        case "json_schema" if body.response_format and body.response_format.json_schema:
            return json.dumps(body.response_format.json_schema.schema_)
        case "json_schema":
            raise InvalidRequest("response_format.json_schema is missing.", param="response_format.json_schema")
        case _:
            return None


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
