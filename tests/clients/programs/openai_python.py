"""OpenAI's own client for Python, whichever version its environment has."""

from typing import Any

import openai

from tests.clients.programs.orders import Order, given, messages, serve

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}


def client(order: Order) -> Any:
    return openai.OpenAI(base_url=order["url"], api_key=order["key"], **given(order, "max_retries"))


def models(order: Order) -> Any:
    return {"models": [model.id for model in client(order).models.list()]}


def ask(order: Order) -> Any:
    answer = client(order).chat.completions.create(
        model=order["model"], messages=messages(order), **given(order, "temperature")
    )
    return {"pieces": [answer.choices[0].message.content], "tokens": answer.usage.total_tokens}


def stream(order: Order) -> Any:
    chunks = client(order).chat.completions.create(
        model=order["model"], messages=messages(order), stream=True, stream_options={"include_usage": True}
    )
    pieces, tokens = [], None
    for chunk in chunks:
        pieces += [choice.delta.content for choice in chunk.choices if choice.delta.content]
        tokens = chunk.usage.total_tokens if chunk.usage else tokens
    return {"pieces": pieces, "tokens": tokens}


def leave(order: Order) -> Any:
    chunks = client(order).chat.completions.create(model=order["model"], messages=messages(order), stream=True)
    pieces = [next(chunks).choices[0].delta.content]
    chunks.close()
    return {"pieces": pieces}


def tools(order: Order) -> Any:
    client(order).chat.completions.create(model=order["model"], messages=messages(order), tools=[TOOL])


def schema(order: Order) -> Any:
    from tests.clients.programs.city import City

    answer = client(order).chat.completions.parse(model=order["model"], messages=messages(order), response_format=City)
    return answer.choices[0].message.parsed.model_dump()


serve(models, ask, stream, leave, tools, schema)
