"""Answers as OpenAI's clients read them: whole, and as the chunks of a stream. Pure; knows no HTTP.

One call may have several answers: they are its choices, and the first one's id is the call's.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from engine.job import Update
from engine.types import Logprob, Status
from ui.api.answers import Answer, trouble_of
from ui.api.errors import error_body

DONE = "[DONE]"
LEAST = -9999.0  # stands for minus infinity, which JSON cannot say

Logprobs = Sequence[Logprob]


def finish_reason(last: Update) -> str:
    return last.finish_reason or "stop"  # stopped by the person: the answer so far is the answer


def usage(last: Sequence[Update], choices: int = 1) -> dict[str, Any]:
    """Tokens of the whole call; the choices of one prompt share its tokens."""
    prompts = [update.prompt_tokens for update in last[::choices]]
    completion_tokens = sum(update.completion_tokens for update in last)
    return {
        "prompt_tokens": sum(prompts),
        "completion_tokens": completion_tokens,
        "total_tokens": sum(prompts) + completion_tokens,
        "prompt_tokens_details": {"cached_tokens": sum(update.cached_tokens for update in last[::choices])},
    }


class Shape(ABC):
    """What chats and plain completions do not have in common."""

    prefix: str
    whole: str
    chunk: str

    @abstractmethod
    def choice(self, number: int, text: str, logprobs: Logprobs) -> dict[str, Any]:
        """A whole choice, but for its index and finish reason."""

    @abstractmethod
    def first(self, number: int) -> dict[str, Any] | None:
        """What a choice begins with in a stream."""

    @abstractmethod
    def piece(self, number: int, text: str, logprobs: Logprobs) -> dict[str, Any]:
        """The next piece of a choice in a stream."""

    @abstractmethod
    def last(self) -> dict[str, Any]:
        """The piece that carries the finish reason."""


class ChatShape(Shape):
    prefix, whole, chunk = "chatcmpl-", "chat.completion", "chat.completion.chunk"

    def choice(self, number: int, text: str, logprobs: Logprobs) -> dict[str, Any]:
        return {"message": {"role": "assistant", "content": text}, "logprobs": self._logprobs(logprobs)}

    def first(self, number: int) -> dict[str, Any]:
        return {"delta": {"role": "assistant", "content": ""}, "logprobs": None}

    def piece(self, number: int, text: str, logprobs: Logprobs) -> dict[str, Any]:
        return {"delta": {"content": text}, "logprobs": self._logprobs(logprobs)}

    def last(self) -> dict[str, Any]:
        return {"delta": {}, "logprobs": None}

    def _logprobs(self, logprobs: Logprobs) -> dict[str, Any] | None:
        if not logprobs:
            return None
        content = [
            {**_token(one.token, one.logprob), "top_logprobs": [_token(*top) for top in one.top]} for one in logprobs
        ]
        return {"content": content, "refusal": None}


class TextShape(Shape):
    """`echoes` is what stands before the text of each choice: its prompt, or nothing."""

    prefix, whole, chunk = "cmpl-", "text_completion", "text_completion"

    def __init__(self, echoes: Sequence[str]) -> None:
        self.echoes = echoes
        self._offsets = [len(echo) for echo in echoes]

    def choice(self, number: int, text: str, logprobs: Logprobs) -> dict[str, Any]:
        echo = self.echoes[number]
        return {"text": echo + text, "logprobs": _lists(logprobs, len(echo)) if logprobs else None}

    def first(self, number: int) -> dict[str, Any] | None:
        return {"text": self.echoes[number], "logprobs": None} if self.echoes[number] else None

    def piece(self, number: int, text: str, logprobs: Logprobs) -> dict[str, Any]:
        offset, self._offsets[number] = self._offsets[number], self._offsets[number] + len(text)
        return {"text": text, "logprobs": _lists(logprobs, offset) if logprobs else None}

    def last(self) -> dict[str, Any]:
        return {"text": "", "logprobs": None}


def whole(shape: Shape, answers: Sequence[Answer], last: Sequence[Update], choices: int) -> dict[str, Any]:
    """The answer to a call that is not streamed."""
    told = [
        {
            "index": number,
            **shape.choice(number, answer.text, [one for of_delta in answer.logprobs for one in of_delta]),
            "finish_reason": finish_reason(update),
        }
        for number, (answer, update) in enumerate(zip(answers, last, strict=True))
    ]
    return {**_head(shape.prefix, answers[0], shape.whole), "choices": told, "usage": usage(last, choices)}


class Chunks:
    """The chunks of a streamed call: of each choice the beginning, its pieces and its end; then usage if asked for."""

    def __init__(self, shape: Shape, answers: Sequence[Answer], *, usage: bool = False, choices: int = 1) -> None:
        self.shape, self.answers, self.usage, self.choices = shape, answers, usage, choices
        self.done = False
        self._begun: set[int] = set()
        self._last: dict[int, Update] = {}

    def __call__(self, number: int, update: Update) -> list[str]:
        frames = [self._chunk(number, piece) for piece in self._pieces(number, update)]
        if update.status.final:
            if trouble := trouble_of(update, self.answers[number].id):
                self.done = True
                return [*map(as_json, frames), as_json(error_body(trouble)), DONE]
            self._last[number] = update
            frames.append(self._chunk(number, self.shape.last(), finish_reason(update)))
        if len(self._last) < len(self.answers):
            return list(map(as_json, frames))
        self.done = True
        return [*map(as_json, [*frames, *self._usage()]), DONE]

    def _pieces(self, number: int, update: Update) -> list[dict[str, Any]]:
        pieces = []
        if number not in self._begun and (update.deltas or update.status is not Status.QUEUED):
            self._begun.add(number)
            pieces = [first] if (first := self.shape.first(number)) else []
        logprobs = update.logprobs or ((),) * len(update.deltas)
        return pieces + [self.shape.piece(number, *piece) for piece in zip(update.deltas, logprobs, strict=True)]

    def _usage(self) -> list[dict[str, Any]]:
        if not self.usage:
            return []
        last = [self._last[number] for number in range(len(self.answers))]
        head = _head(self.shape.prefix, self.answers[0], self.shape.chunk)
        return [{**head, "choices": [], "usage": usage(last, self.choices)}]

    def _chunk(self, number: int, piece: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        head = _head(self.shape.prefix, self.answers[0], self.shape.chunk)
        chunk = {**head, "choices": [{"index": number, **piece, "finish_reason": finish}]}
        return {**chunk, "usage": None} if self.usage else chunk


def as_json(frame: dict[str, Any]) -> str:
    return json.dumps(frame, ensure_ascii=False, separators=(",", ":"))


def _head(prefix: str, answer: Answer, kind: str) -> dict[str, Any]:
    created = int(answer.queued_at.timestamp())
    return {"id": prefix + answer.id, "object": kind, "created": created, "model": answer.model}


def _token(token: bytes, logprob: float) -> dict[str, Any]:
    return {"token": token.decode(errors="replace"), "logprob": max(logprob, LEAST), "bytes": list(token)}


def _lists(logprobs: Logprobs, offset: int) -> dict[str, Any]:
    tokens = [one.token.decode(errors="replace") for one in logprobs]
    starts = [offset + sum(map(len, tokens[:at])) for at in range(len(tokens))]
    tops = [{token.decode(errors="replace"): max(p, LEAST) for token, p in one.top} for one in logprobs]
    told = [max(one.logprob, LEAST) for one in logprobs]
    return {"tokens": tokens, "token_logprobs": told, "top_logprobs": tops, "text_offset": starts}
