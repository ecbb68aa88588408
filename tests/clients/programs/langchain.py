"""langchain-openai: LangChain's chat model for OpenAI's API."""

from typing import Any

from langchain_openai import ChatOpenAI

from tests.clients.programs.city import City
from tests.clients.programs.orders import Order, given, messages, serve


def chat(order: Order) -> Any:
    return ChatOpenAI(
        base_url=order["url"], api_key=order["key"], model=order["model"], **given(order, "temperature", "max_retries")
    )


def ask(order: Order) -> Any:
    answer = chat(order).invoke(messages(order))
    return {"pieces": [answer.content], "tokens": answer.usage_metadata["total_tokens"]}


def stream(order: Order) -> Any:
    pieces, whole = [], None
    for chunk in chat(order).stream(messages(order), stream_usage=True):
        pieces += [chunk.content] if chunk.content else []
        whole = chunk if whole is None else whole + chunk
    return {"pieces": pieces, "tokens": whole and whole.usage_metadata and whole.usage_metadata["total_tokens"]}


def leave(order: Order) -> Any:
    chunks = chat(order).stream(messages(order))
    pieces = [next(chunks).content]
    chunks.close()
    return {"pieces": pieces}


def tools(order: Order) -> Any:
    chat(order).bind_tools([City]).invoke(messages(order))


def schema(order: Order) -> Any:
    return chat(order).with_structured_output(City).invoke(messages(order)).model_dump()


serve(ask, stream, leave, tools, schema)
