"""Logged exchanges as JSON lines, CSV, or chat lines for fine-tuning, one exchange at a time.

The CSV opens in spreadsheet programs with Chinese intact (a byte order mark leads), and no cell can become a formula.
Chat lines are {"messages": [...]} as trainers read them: what was sent, and the answer as a reviewer corrected it, else
as it was, if it came to its end and the person did not object. Knows nothing of HTTP and of the store.
"""

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from engine.types import Exchange, Status
from ui.components.review.facts import seconds, tokens_per_s

if TYPE_CHECKING:
    from storage.records import Mark

Format = Literal["jsonl", "csv", "chat"]
People = Mapping[str, str]  # names by user id

NAMES: dict[Format, str] = {"jsonl": "jsonl", "csv": "csv", "chat": "chat.jsonl"}  # how files end
MEDIA_TYPES: dict[Format, str] = {
    "jsonl": "application/x-ndjson; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
    "chat": "application/x-ndjson; charset=utf-8",
}
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # full-width forms too: some programs take them

Cell = str | int | float | None
COLUMNS = (
    "id", "person", "source", "conversation_id", "parent_id", "queued_at", "status", "finish_reason", "error",
    "prompt", "answer", "model", "quantization", "temperature", "top_p", "top_k", "repetition_penalty",
    "frequency_penalty", "presence_penalty", "json_schema", "seed", "max_tokens", "prompt_tokens", "cached_tokens",
    "completion_tokens", "queue_depth", "queue_s", "ttft_s", "total_s", "tokens_per_s", "rating", "labels",
    "correction", "assignee", "reviewed",
)  # fmt: skip


def columns(exchange: Exchange, mark: "Mark | None", people: People) -> dict[str, Cell]:
    """The flat part, which both formats share. Seconds; times are ISO 8601 in UTC."""
    sampling = exchange.sampling
    return {
        "id": exchange.id,
        "person": people.get(exchange.person or "", ""),
        "source": exchange.source,
        "conversation_id": exchange.conversation_id,
        "parent_id": exchange.parent_id,
        "queued_at": exchange.queued_at.isoformat(),
        "status": exchange.status.value,
        "finish_reason": exchange.finish_reason,
        "error": exchange.error,
        "prompt": exchange.prompt,
        "answer": exchange.answer,
        "model": exchange.model,
        "quantization": exchange.quantization,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "repetition_penalty": sampling.repetition_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
        "json_schema": sampling.json_schema,
        "seed": sampling.seed,
        "max_tokens": sampling.max_tokens,
        "prompt_tokens": exchange.prompt_tokens,
        "cached_tokens": exchange.cached_tokens,
        "completion_tokens": exchange.completion_tokens,
        "queue_depth": exchange.queue_depth,
        "queue_s": seconds(exchange.queued_at, exchange.started_at),
        "ttft_s": seconds(exchange.queued_at, exchange.first_token_at),
        "total_s": seconds(exchange.queued_at, exchange.finished_at),
        "tokens_per_s": tokens_per_s(exchange),
        "rating": mark.rating if mark else None,
        "labels": "; ".join(mark.labels) if mark else "",
        "correction": mark.correction if mark else "",
        "assignee": people.get(mark.assignee or "", "") if mark else "",
        "reviewed": "yes" if mark and mark.done else "no",
    }


def json_line(exchange: Exchange, mark: "Mark | None", people: People) -> str:
    whole = {
        **columns(exchange, mark, people),
        "stop": list(exchange.sampling.stop),
        "messages": [asdict(message) for message in exchange.messages],
        "end_user": exchange.end_user,
        "metadata": dict(exchange.request_metadata),
    }
    return _json({**whole, "labels": list(mark.labels) if mark else [], "reviewed": bool(mark and mark.done)})


def chat_line(exchange: Exchange, mark: "Mark | None", people: People) -> str:
    """ "" for an exchange that nobody should learn from, and for a text that was gone on with: it is no chat."""
    if exchange.messages[-1].role == "text":
        return ""
    good = exchange.status is Status.DONE and exchange.finish_reason == "stop" and not (mark and mark.rating == -1)
    answer = (mark.correction if mark else "") or (exchange.whole_answer if good else "")
    asked = exchange.messages[:-1] if exchange.opening else exchange.messages  # the beginning is part of the answer
    said = [*(asdict(message) for message in asked), {"role": "assistant", "content": answer}]
    return _json({"messages": said}) if answer else ""


def csv_line(exchange: Exchange, mark: "Mark | None", people: People) -> str:
    return _csv([harmless(cell) for cell in columns(exchange, mark, people).values()])


def csv_head() -> str:
    return "\ufeff" + _csv(list(COLUMNS))


def harmless(cell: Cell) -> Cell:
    """The cell with an apostrophe before what a spreadsheet program would take for a formula."""
    return "'" + cell if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) + "\n"


def _csv(cells: list[Cell]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


LINES: dict[Format, Callable[[Exchange, "Mark | None", People], str]] = {
    "jsonl": json_line,
    "csv": csv_line,
    "chat": chat_line,
}
