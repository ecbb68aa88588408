"""llm: the command and library that many use in a shell; its models of other servers stand in a file."""

import os
import tempfile
from pathlib import Path
from typing import Any

import llm

from tests.clients.programs.city import City
from tests.clients.programs.orders import Order, given, serve

os.environ["LLM_USER_PATH"] = tempfile.mkdtemp(prefix="llm-")


def model(order: Order) -> Any:
    entry = ["- model_id: qdesk", f"model_name: {order['model']}", f"api_base: {order['url']}", "api_key_name: qdesk"]
    can = ["supports_schema: true", "supports_tools: true"]
    path = Path(os.environ["LLM_USER_PATH"]) / "extra-openai-models.yaml"
    path.write_text("\n  ".join(entry + can) + "\n", encoding="utf-8")
    return llm.get_model("qdesk")


def answer(order: Order, **asked: Any) -> Any:
    conversation = model(order).conversation()
    *before, question = order["say"]
    for said, told in zip(before[::2], before[1::2], strict=True):
        assert conversation.prompt(said, key=order["key"], stream=False).text() == told
    return conversation.prompt(question, key=order["key"], **given(order, "temperature"), **asked)


def ask(order: Order) -> Any:
    whole = answer(order, stream=False)
    return {"pieces": [whole.text()], "tokens": whole.usage().input + whole.usage().output}


def stream(order: Order) -> Any:
    piecewise = answer(order, stream=True)
    pieces = [piece for piece in piecewise if piece]
    return {"pieces": pieces, "tokens": piecewise.usage().input + piecewise.usage().output}


def tools(order: Order) -> Any:
    def look() -> str:
        """Look."""
        return ""

    answer(order, stream=False, tools=[look]).text()


def schema(order: Order) -> Any:
    return City.model_validate_json(answer(order, stream=False, schema=City).text()).model_dump()


serve(ask, stream, tools, schema)
