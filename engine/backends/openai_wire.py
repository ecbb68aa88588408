"""OpenAI's chat completions as they go over the wire: from a ChatRequest to a body, from server-sent events to Events.

Pure but for reading the response; knows nothing of connections and retries.
"""

import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import httpx

from engine.errors import BUSY_ELSEWHERE, BackendFailed, EngineError, InvalidRequest, QueueFull
from engine.types import ChatRequest, Delta, Done, Event, FinishReason, Logprob, Sampling, Started, opening

EXTRAS = ("top_k", "repetition_penalty", "ignore_eos")  # vLLM and others take them; OpenAI's own API does not
GO_ON = {"continue_final_message": True, "add_generation_prompt": False}  # vLLM's way to go on with an answer
GO_ON_WORDS = "Go on with your answer exactly where it stops. Repeat nothing and add nothing before it."  # others'
MAX_SHOWN = 300  # characters of the other server's message that are passed on


def path_of(request: ChatRequest) -> str:
    return "/completions" if _is_plain(request) else "/chat/completions"


def body_of(request: ChatRequest, model: str, *, extras: bool) -> dict[str, Any]:
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        **_asked(request),
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "stop": list(sampling.stop) or None,
        "frequency_penalty": sampling.frequency_penalty or None,
        "presence_penalty": sampling.presence_penalty or None,
        "response_format": _format(sampling),
    }
    if extras:
        body |= {name: getattr(sampling, name) for name in EXTRAS if getattr(sampling, name) is not False}
    if opening(request.messages):
        if extras:
            body |= GO_ON
        else:
            body["messages"].append({"role": "user", "content": GO_ON_WORDS})
    return {name: value for name, value in body.items() if value is not None}


def _is_plain(request: ChatRequest) -> bool:
    return request.messages[-1].role == "text"


def _asked(request: ChatRequest) -> dict[str, Any]:
    alternatives = request.sampling.logprobs
    if _is_plain(request):
        return {"prompt": request.prompt, "logprobs": alternatives}
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    wanted = {"logprobs": True, "top_logprobs": alternatives} if alternatives is not None else {}
    return {"messages": messages, **wanted}


def _format(sampling: Sampling) -> dict[str, Any] | None:
    if sampling.json_schema is None:
        return None
    schema = {"name": "answer", "schema": json.loads(sampling.json_schema), "strict": True}
    return {"type": "json_schema", "json_schema": schema}


async def read_events(response: httpx.Response) -> AsyncGenerator[str, None]:
    """Yield the data of each server-sent event. Lines end at line feeds alone: JSON may hold U+2028 and its like."""
    rest = b""
    async for piece in response.aiter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line.removeprefix(b"data:").strip().decode()


class Answer:
    """One answer as it comes in. Tokens are one a chunk until the server's own count comes."""

    def __init__(self, prompt_tokens: int) -> None:
        self._prompt_tokens, self._completion_tokens, self._cached_tokens = prompt_tokens, 0, 0
        self._started = False
        self._finish_reason: FinishReason | None = None

    def take(self, data: str) -> Iterator[Event]:
        """The events of one chunk. Raises BackendFailed for a chunk that is an error or no chunk at all."""
        chunk = _json(data)
        if error := chunk.get("error"):
            raise BackendFailed(f"The other server failed: {_message(error)}")
        if usage := chunk.get("usage"):
            self._count(usage)
        for choice in chunk.get("choices") or ():
            if not self._started:
                self._started = True
                yield Started(self._prompt_tokens)
            text = (choice.get("delta") or {}).get("content") or choice.get("text") or ""
            if logprobs := _logprobs(choice.get("logprobs")):
                self._completion_tokens += len(logprobs)
                yield Delta(text, len(logprobs), logprobs)
            elif text:
                self._completion_tokens += 1
                yield Delta(text)
            if reason := choice.get("finish_reason"):
                self._finish_reason = "length" if reason == "length" else "stop"

    def done(self) -> Done:
        """Raises BackendFailed when the stream ended before the answer did."""
        if self._finish_reason is None:
            raise BackendFailed("The other server broke the answer off; try again.")
        return Done(self._finish_reason, self._prompt_tokens, self._completion_tokens, self._cached_tokens)

    def _count(self, usage: dict[str, Any]) -> None:
        self._prompt_tokens = usage.get("prompt_tokens", self._prompt_tokens)
        self._completion_tokens = usage.get("completion_tokens", self._completion_tokens)
        self._cached_tokens = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0


def _logprobs(said: dict[str, Any] | None) -> tuple[Logprob, ...]:
    """Those of a chat's chunk, or of a plain completion's, which are four lists of the same length."""
    if not said:
        return ()
    if "tokens" in said:
        tops = said.get("top_logprobs") or [None] * len(said["tokens"])
        return tuple(
            Logprob(token.encode(), logprob or 0.0, tuple((one.encode(), p) for one, p in (top or {}).items()))
            for token, logprob, top in zip(said["tokens"], said["token_logprobs"], tops, strict=True)
        )
    return tuple(
        Logprob(_bytes(token), token["logprob"], tuple((_bytes(top), top["logprob"]) for top in token["top_logprobs"]))
        for token in said.get("content") or ()
    )


def _bytes(token: dict[str, Any]) -> bytes:
    given = token.get("bytes")
    return token["token"].encode() if given is None else bytes(given)


def refusal(response: httpx.Response, said: str) -> EngineError:
    """The error for an answer with a bad status; `said` is what `message_of` made of its body."""
    match response.status_code:
        case 429 | 503:
            return QueueFull(BUSY_ELSEWHERE, retry_after_s=_retry_after(response))
        case 401 | 403:
            return BackendFailed("The other server refuses the key; the operator must check QDESK_OPENAI_API_KEY.")
        case 400 | 413 | 422:
            return InvalidRequest(f"The other server refuses the request: {said}")
        case status:
            return BackendFailed(f"The other server answered with status {status}: {said}")


def message_of(body: bytes) -> str:
    """What an error's body says, in whichever shape."""
    try:
        content = json.loads(body)
    except ValueError:
        return _short(body.decode(errors="replace"))
    return _message(content.get("error", content) if isinstance(content, dict) else content)


def models_in(response: httpx.Response) -> dict[str, dict[str, Any]]:
    """The listed models by name, in their order; none when the answer is something else."""
    try:
        listed = response.json()["data"]
        return {str(model["id"]): model for model in listed}
    except (ValueError, TypeError, KeyError):
        return {}


def _json(data: str) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except ValueError as error:
        raise BackendFailed(f"The other server sent what is no JSON: {_short(data)}") from error
    return chunk if isinstance(chunk, dict) else {}


def _message(error: object) -> str:
    said = error.get("message") or error.get("detail") or error if isinstance(error, dict) else error
    return _short(str(said))


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _retry_after(response: httpx.Response) -> float:
    try:
        return max(1.0, float(response.headers.get("Retry-After", "")))
    except ValueError:
        return 5.0  # none, or a date
