"""What /openapi.json says of answers: their shapes, and the errors of each route. Nothing is built from these shapes.

    @app.get("/v1/models", responses=replies(Models))
    @app.post("/v1/completions", responses=replies(Completion, *ASKING), openapi_extra=asking(CompletionBody))

That the server keeps to them is shown with schemathesis (tests/clients/test_schemathesis.py).
"""

from typing import Any, Literal

from pydantic import BaseModel, Field

from engine.types import FinishReason
from ui.api.bodies import Body, ChatBody, CompletionBody, DetokenizeBody, SimpleBody, TokenizeBody

EVERYWHERE = (401, 403, 421, 500, 503)  # a key is needed, the server has names, and either may fail
READING = (400, 404, 413, 429)  # a body is read, which may name a model
ASKING = (*READING, 422, 499, 504)  # an answer is waited for

WHEN = {
    400: "Malformed, or a value that this server cannot keep; `param` names the part.",
    401: "No key or session, one that is not known, or one that has ended meanwhile.",
    403: "Not for this account, or a call from another site's page.",
    404: "Nothing there, or nothing of one's own; for a model, the message names the running one.",
    413: "The body is larger than 4 MiB.",
    421: "This server is not called by this name.",
    422: "The `Idempotency-Key` was used for another request.",
    429: "More at once, or more calls in a time, than one account may have.",
    499: "The request was cancelled.",
    500: "The engine, or the server itself, failed; the message has the request's id.",
    501: "The model runs at another server, which has the tokenizer.",
    503: "The queue is full, or the server is not ready; `code` says which.",
    504: "The answer was not ready in time.",
}
ID = {"x-request-id": {"description": "The id that was sent along, else the server's.", "schema": {"type": "string"}}}
RETRY = {"Retry-After": {"description": "Seconds after which to ask again.", "schema": {"type": "integer"}}}
GIVEN_ID = {
    "name": "x-request-id",
    "in": "header",
    "required": False,
    "description": "Comes back, and stands in the server's log, if it is up to 64 letters, digits and `._:-`.",
    "schema": {"type": "string"},
}
ONCE = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key within a day gives the same exchange, and asks the model once.",
    "schema": {"type": "string", "pattern": "^[!-~]+$", "minLength": 1, "maxLength": 255},
}
TO_TRY: dict[type[Body], dict[str, Any]] = {  # what /docs sends where nobody changes it
    ChatBody: {"messages": [{"role": "user", "content": "Say hello in Chinese."}]},
    CompletionBody: {"prompt": "Once upon a time", "max_tokens": 16},
    SimpleBody: {"prompt": "Say hello in Chinese."},
    TokenizeBody: {"prompt": "Say hello in Chinese."},
    DetokenizeBody: {"tokens": [0, 1, 2]},
}
WITHOUT_KEY: dict[str, Any] = {"security": []}

Responses = dict[int | str, dict[str, Any]]


def replies(shape: type[BaseModel] | None, *errors: int, streams: bool = False) -> Responses:
    """What a route may answer: `shape` as JSON, else plain text; server-sent events if it streams; and errors."""
    good: dict[str, Any] = {"description": "The answer.", "headers": ID}
    if shape:
        good["model"] = shape
    if streams or not shape:
        good["content"] = {"text/event-stream" if shape else "text/plain": {"schema": {"type": "string"}}}
    failures: Responses = {status: _error(status) for status in sorted({*EVERYWHERE, *errors})}
    return {200: good, **failures}


def probe(shape: type[BaseModel], *unready: int) -> Responses:
    """The same for what everybody may ask: an answer in one shape, whatever its status."""
    told = {"model": shape, "headers": ID}
    failures: Responses = {status: {**told, "description": "Not ready, and why."} for status in unready}
    return {200: {**told, "description": "The answer."}, **failures}


def asking(body: type[Body]) -> dict[str, Any]:
    """A route's body and headers, for `openapi_extra`: bodies are read by hand, so that faults are told in one way."""
    return {**reading(body), "parameters": [GIVEN_ID, ONCE]}


def reading(body: type[Body]) -> dict[str, Any]:
    shown = {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}, "example": TO_TRY[body]}
    return {"requestBody": {"required": True, "content": {"application/json": shown}}}


def _error(status: int) -> dict[str, Any]:
    headers = ID | RETRY if status in (429, 503) else ID
    return {"model": Failure, "description": WHEN[status], "headers": headers}


class Error(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class Failure(BaseModel):
    """Every error. POST / has `response`, `status` and `time` beside it."""

    error: Error


class Simple(BaseModel):
    response: str
    status: int
    time: str


class PromptDetails(BaseModel):
    cached_tokens: int = Field(description="Of the prompt's tokens, those that were found in the prefix cache.")


class Usage(BaseModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails


class Token(BaseModel):
    token: str
    logprob: float
    bytes: list[int]


class ChosenToken(Token):
    top_logprobs: list[Token]


class ChatLogprobs(BaseModel):
    content: list[ChosenToken]
    refusal: None


class Said(BaseModel):
    role: Literal["assistant"]
    content: str


class ChatChoice(BaseModel):
    index: int
    message: Said
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason


class ChatCompletion(BaseModel):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage


class TextLogprobs(BaseModel):
    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class TextChoice(BaseModel):
    index: int
    text: str
    logprobs: TextLogprobs | None
    finish_reason: FinishReason


class Completion(BaseModel):
    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    choices: list[TextChoice]
    usage: Usage


class Model(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    quantization: str
    context_tokens: int
    reason: str = Field(description="Why this model was chosen.")


class Models(BaseModel):
    object: Literal["list"]
    data: list[Model]


class Tokens(BaseModel):
    tokens: list[int]
    count: int
    max_model_len: int


class Text(BaseModel):
    prompt: str


class Running(BaseModel):
    """A request that runs or waits; never its text."""

    id: str
    object: Literal["request"]
    status: str
    source: str
    user: str | None
    model: str
    created: int
    age_s: float
    position: int | None = Field(description="1 is next; null: it runs.")
    expected_wait_s: float | None
    prompt_tokens: int
    completion_tokens: int
    tokens_per_s: float


class AllRunning(BaseModel):
    object: Literal["list"]
    data: list[Running]


class Cancelled(BaseModel):
    id: str
    object: Literal["request"]
    status: str


class Alive(BaseModel):
    status: Literal["alive"]


class Condition(BaseModel):
    status: Literal["ready", "loading", "failed", "stalled", "paused", "draining"]
    busy: bool = Field(description="Every place is taken.")
    running: int
    waiting: int
    model: str
    reason: str | None = Field(None, description="Why it is not ready.")
