"""The bodies that programs send, as pydantic models: what /docs shows, and what ui/api/requests.py reads.

Unknown fields are ignored. Fields that are known but cannot be kept are here too, so that they are refused by name.
"""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, WithJsonSchema
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

MAX_MESSAGES = 10_000
MAX_CHOICES = 8
MAX_METADATA = 16  # pairs, as at OpenAI; keys of 64 and values of 512 characters

# What engine/types.py keeps to, with sentences of its own; said here as well for whoever reads the description.
ONE_OR_MORE: JsonDict = {"minimum": 1}
INT64: JsonDict = {"minimum": -(2**63), "maximum": 2**63 - MAX_CHOICES}
TEXT: JsonDict = {"type": "string", "minLength": 1}
STOP: JsonDict = {
    "description": "Up to 8 strings of up to 200 characters.",
    "anyOf": [{**TEXT, "maxLength": 200}, {"type": "array", "items": {**TEXT, "maxLength": 200}, "maxItems": 8}],
}
PROMPT: JsonDict = {"anyOf": [TEXT, {"type": "array", "items": TEXT, "minItems": 1, "maxItems": MAX_CHOICES}]}


class _First(FailFast):
    """Of a million wrong items the first is told; no error is made of the others, which would take gigabytes."""

    def __hash__(self) -> int:  # pydantic's own has none, which unions of types need
        return hash(self.fail_fast)


Item = TypeVar("Item")
Listed = Annotated[list[Item], _First()]


def _few(pairs: object) -> object:
    """The same for pairs, which are counted before they are looked at."""
    if isinstance(pairs, dict) and len(pairs) > MAX_METADATA:
        raise PydanticCustomError("too_long", "Dictionary should have at most {most} items", {"most": MAX_METADATA})
    return pairs


class Body(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class TextPart(Body):
    type: Literal["text"]
    text: str


class OtherPart(Body):
    type: str


class ChatMessage(Body):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | Listed[TextPart | OtherPart]


class StreamOptions(Body):
    include_usage: bool | None = None


class JsonSchema(Body):
    name: str = ""
    schema_: dict[str, Any] = Field({}, alias="schema", description="JSON Schema.")


class ResponseFormat(Body):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class Drawing(Body):
    """What chats and plain completions have in common."""

    model: str | None = Field(None, description="The running model's name, or `default`.")
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, json_schema_extra=ONE_OR_MORE)
    temperature: float | None = Field(None, description="0 is greedy.", json_schema_extra={"minimum": 0, "maximum": 2})
    top_p: float | None = Field(None, json_schema_extra={"exclusiveMinimum": 0, "maximum": 1})
    top_k: int | None = Field(None, description="0 is off.", json_schema_extra={"minimum": 0, "maximum": 1_000_000})
    frequency_penalty: float | None = Field(None, json_schema_extra={"minimum": -2, "maximum": 2})
    presence_penalty: float | None = Field(None, json_schema_extra={"minimum": -2, "maximum": 2})
    repetition_penalty: float | None = Field(
        None, description="1 is off.", json_schema_extra={"exclusiveMinimum": 0, "maximum": 2}
    )
    seed: int | None = Field(
        None, description="Choice 0 has this seed, choice 1 the next one, and so on.", json_schema_extra=INT64
    )
    stop: Annotated[str | Listed[str], WithJsonSchema(STOP)] | None = None
    ignore_eos: bool | None = None
    n: int | None = Field(None, ge=1, le=MAX_CHOICES, description="Each choice counts as one request.")
    user: Annotated[str, Field(max_length=200)] | None = Field(None, description="Whom you ask for; kept in the log.")
    metadata: (
        Annotated[
            dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
            Field(max_length=MAX_METADATA),
            BeforeValidator(_few),
        ]
        | None
    ) = Field(None, description="Kept with the exchange in the log.")
    response_format: ResponseFormat | None = Field(None, description="Text, any JSON object, or JSON of a schema.")


class ChatBody(Drawing):
    """The body of POST /v1/chat/completions: OpenAI's, as far as this server can keep it."""

    messages: Annotated[Listed[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    max_completion_tokens: int | None = Field(
        None, description="The same as max_tokens, and goes before it.", json_schema_extra=ONE_OR_MORE
    )
    logprobs: bool | None = None
    top_logprobs: int | None = Field(
        None, description="Needs logprobs.", json_schema_extra={"minimum": 0, "maximum": 20}
    )
    tools: Any = Field(None, description="Not supported.")
    tool_choice: Any = Field(None, description="Only none and auto.")
    functions: Any = Field(None, description="Not supported.")
    function_call: Any = Field(None, description="Not supported.")
    audio: Any = Field(None, description="Not supported.")
    modalities: Listed[str] | None = Field(None, description="Only text.")
    logit_bias: Any = Field(None, description="Not supported.")


class CompletionBody(Drawing):
    """The body of POST /v1/completions: a text to be continued as it is, without a chat template."""

    prompt: Annotated[str | list[Any], WithJsonSchema(PROMPT)]
    max_tokens: int | None = Field(
        16, description="16 where it is left out, as at OpenAI.", json_schema_extra=ONE_OR_MORE
    )
    logprobs: int | None = Field(
        None, description="Alternatives a token.", json_schema_extra={"minimum": 0, "maximum": 20}
    )
    echo: bool | None = Field(False, description="Put the prompt before the text.")
    best_of: int | None = Field(None, description="Only the same as n.")
    suffix: str | None = Field(None, description="Not supported.")
    logit_bias: Any = Field(None, description="Not supported.")


class SimpleBody(Body):
    """The body of POST /."""

    prompt: str
    stream: bool | None = False
    max_tokens: int | None = Field(None, json_schema_extra=ONE_OR_MORE)
    temperature: float | None = Field(None, json_schema_extra={"minimum": 0, "maximum": 2})
    top_p: float | None = Field(None, json_schema_extra={"exclusiveMinimum": 0, "maximum": 1})
    seed: int | None = Field(None, json_schema_extra=INT64)


class TokenizeBody(Body):
    """The body of POST /v1/tokenize: a text, or messages as they go through the chat template."""

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[Listed[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)] | None = None


class DetokenizeBody(Body):
    """The body of POST /v1/detokenize."""

    model: str | None = None
    tokens: Annotated[Listed[int], Field(max_length=1_000_000)]


BODIES = (ChatBody, CompletionBody, SimpleBody, TokenizeBody, DetokenizeBody)
