"""The bodies that programs send, as pydantic models: what /docs shows, and what ui/api/requests.py reads.

Unknown fields are ignored. Fields that are known but cannot be kept are here too, so that they are refused by name.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_MESSAGES = 10_000
MAX_CHOICES = 8
MAX_METADATA = 16  # pairs, as at OpenAI; keys of 64 and values of 512 characters


class Body(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


class TextPart(Body):
    type: Literal["text"]
    text: str


class OtherPart(Body):
    type: str


class ChatMessage(Body):
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart | OtherPart]


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
    max_tokens: int | None = None
    temperature: float | None = Field(None, description="0 (greedy) to 2.")
    top_p: float | None = None
    top_k: int | None = Field(None, description="0 is off.")
    frequency_penalty: float | None = Field(None, description="-2 to 2.")
    presence_penalty: float | None = Field(None, description="-2 to 2.")
    repetition_penalty: float | None = Field(None, description="1 is off.")
    seed: int | None = Field(None, description="Choice 0 has this seed, choice 1 the next one, and so on.")
    stop: str | list[str] | None = Field(None, description="Up to 8 strings of up to 200 characters.")
    ignore_eos: bool | None = None
    n: int | None = Field(None, ge=1, le=MAX_CHOICES, description="Each choice counts as one request.")
    user: Annotated[str, Field(max_length=200)] | None = Field(None, description="Whom you ask for; kept in the log.")
    metadata: (
        Annotated[
            dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
            Field(max_length=MAX_METADATA),
        ]
        | None
    ) = Field(None, description="Kept with the exchange in the log.")
    response_format: ResponseFormat | None = Field(None, description="Text, any JSON object, or JSON of a schema.")


class ChatBody(Drawing):
    """The body of POST /v1/chat/completions: OpenAI's, as far as this server can keep it."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)]
    max_completion_tokens: int | None = Field(None, description="The same as max_tokens, and goes before it.")
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, description="0 to 20; needs logprobs.")
    tools: Any = Field(None, description="Not supported.")
    tool_choice: Any = Field(None, description="Only none and auto.")
    functions: Any = Field(None, description="Not supported.")
    function_call: Any = Field(None, description="Not supported.")
    audio: Any = Field(None, description="Not supported.")
    modalities: list[str] | None = Field(None, description="Only text.")
    logit_bias: dict[str, float] | None = Field(None, description="Not supported.")


class CompletionBody(Drawing):
    """The body of POST /v1/completions: a text to be continued as it is, without a chat template."""

    prompt: str | list[str] | list[int] | list[list[int]]
    max_tokens: int | None = Field(16, description="16 where it is left out, as at OpenAI.")
    logprobs: int | None = Field(None, description="0 to 20 alternatives a token.")
    echo: bool | None = Field(False, description="Put the prompt before the text.")
    best_of: int | None = Field(None, description="Only the same as n.")
    suffix: str | None = Field(None, description="Not supported.")
    logit_bias: dict[str, float] | None = Field(None, description="Not supported.")


class SimpleBody(Body):
    """The body of POST /."""

    prompt: str
    stream: bool | None = False
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None


class TokenizeBody(Body):
    """The body of POST /v1/tokenize: a text, or messages as they go through the chat template."""

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=MAX_MESSAGES)] | None = None


class DetokenizeBody(Body):
    """The body of POST /v1/detokenize."""

    model: str | None = None
    tokens: Annotated[list[int], Field(max_length=1_000_000)]
