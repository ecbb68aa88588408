"""The server's log: one place, one line an event, as text or as JSON; nobody can forge a line by what they send.

Knows nothing of what is logged. Tracebacks show no values of variables, which may be prompts, keys or passwords.
"""

import json
import logging
import re
import sys
import traceback
from typing import TYPE_CHECKING, Literal, TextIO

from loguru import logger

if TYPE_CHECKING:
    from loguru import Message, Record

# Whatever begins a line of its own, moves a terminal's cursor, or turns the direction of writing.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def log_in_one_place(form: Literal["text", "json"] = "text", to: TextIO | None = None) -> None:
    """Send what uvicorn, NiceGUI and others log the same way as our own lines, from INFO on, to stderr."""
    stream = to or sys.stderr
    line = _as_json if form == "json" else _as_text

    def write(message: "Message") -> None:
        stream.write(line(message.record))
        stream.flush()

    logger.remove()
    logger.add(write, level="INFO", format="{message}", diagnose=False)
    logging.basicConfig(handlers=[_ToLoguru()], level=logging.WARNING, force=True)


class _ToLoguru(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        logger.opt(exception=record.exc_info).log(record.levelname, "{}", record.getMessage())


def one_line(text: str) -> str:
    """The text with every character escaped that could begin a line of its own."""
    return _UNSAFE.sub(lambda found: ascii(found[0])[1:-1], text)


def _as_text(record: "Record") -> str:
    head = f"{record['time']:YYYY-MM-DD HH:mm:ss.SSSZ} {record['level'].name:<7} "
    below = [f"    | {one_line(line)}\n" for line in _traceback(record).splitlines()]  # none looks like a line of ours
    return head + one_line(record["message"]) + "\n" + "".join(below)


def _as_json(record: "Record") -> str:
    told = {"time": record["time"].isoformat(), "level": record["level"].name, "message": record["message"]}
    told |= record["extra"]
    if trace := _traceback(record):
        told["traceback"] = trace
    return json.dumps(told, ensure_ascii=True, default=str) + "\n"


def _traceback(record: "Record") -> str:
    error = record["exception"]
    return "".join(traceback.format_exception(error.type, error.value, error.traceback)) if error else ""
