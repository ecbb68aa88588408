"""Logged exchanges as JSON lines or CSV, one exchange at a time, so that a million of them need no memory.

The CSV opens in spreadsheet programs with Chinese intact (a byte order mark leads), and no cell can become a formula.
Knows nothing of HTTP and of the store.
"""

import csv
import io
import json
from collections.abc import Callable
from typing import Literal

from engine.types import Exchange
from ui.components.review.facts import seconds, tokens_per_s

Format = Literal["jsonl", "csv"]

MEDIA_TYPES: dict[Format, str] = {"jsonl": "application/x-ndjson; charset=utf-8", "csv": "text/csv; charset=utf-8"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")  # full-width forms too: some programs take them

Cell = str | int | float | None


def columns(exchange: Exchange, person: str) -> dict[str, Cell]:
    """The flat part, which both formats share. Seconds; times are ISO 8601 in UTC."""
    sampling = exchange.sampling
    return {
        "id": exchange.id,
        "person": person,
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
    }


def json_line(exchange: Exchange, person: str) -> str:
    messages = [{"role": message.role, "content": message.content} for message in exchange.messages]
    whole = {**columns(exchange, person), "stop": list(exchange.sampling.stop), "messages": messages}
    return json.dumps(whole, ensure_ascii=False) + "\n"


def csv_line(exchange: Exchange, person: str) -> str:
    return _csv([harmless(cell) for cell in columns(exchange, person).values()])


def csv_head(exchange: Exchange) -> str:
    return "\ufeff" + _csv(list(columns(exchange, "")))


def harmless(cell: Cell) -> Cell:
    """The cell with an apostrophe before what a spreadsheet program would take for a formula."""
    return "'" + cell if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


def _csv(cells: list[Cell]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


LINES: dict[Format, Callable[[Exchange, str], str]] = {"jsonl": json_line, "csv": csv_line}
