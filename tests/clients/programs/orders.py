"""What all of Python's programs here have in common: an order a line comes in, an answer a line goes out.

    {"do": "ask", "url": ..., "key": ..., "model": ..., "say": ["question", "answer", "question"], ...}
    {"pieces": ["the", " answer"]}, or {"error": "BadRequestError", "status": 400, "message": "..."}

Imports the standard library alone, for any client's environment.
"""

import json
import os
import sys
from collections.abc import Callable
from typing import Any

Order = dict[str, Any]


def serve(*doers: Callable[[Order], Any]) -> None:
    """Do what is ordered until there are no more orders; `do` is the name of one of these functions."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a client prints by itself is no answer
    by_name = {doer.__name__: doer for doer in doers}
    for line in sys.stdin:
        order = json.loads(line)
        answers.write(json.dumps(_done(by_name[order["do"]], order)) + "\n")
        answers.flush()


def messages(order: Order) -> list[dict[str, Any]]:
    """What was said in turn, by the user first, as OpenAI's API takes it."""
    return [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(order["say"])]


def given(order: Order, *names: str) -> dict[str, Any]:
    return {name: order[name] for name in names if name in order}


def _done(doer: Callable[[Order], Any], order: Order) -> Any:
    try:
        return doer(order)
    except Exception as error:
        status = getattr(error, "status_code", None)
        return {"error": type(error).__name__, "status": status, "message": str(error)}
