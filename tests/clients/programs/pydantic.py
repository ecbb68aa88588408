"""pydantic-ai: agents on OpenAI's chat completions."""

import asyncio
from typing import Any

from pydantic_ai import Agent, NativeOutput
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from tests.clients.programs.city import City
from tests.clients.programs.orders import Order, given, serve


def agent(order: Order, **kinds: Any) -> Any:
    model = OpenAIChatModel(order["model"], provider=OpenAIProvider(base_url=order["url"], api_key=order["key"]))
    return Agent(model, model_settings=given(order, "temperature"), **kinds)


def said(order: Order) -> dict[str, Any]:
    """The last question, and what was said before it as the agent remembers it."""
    *before, question = order["say"]
    history = [
        ModelResponse([TextPart(text)]) if at % 2 else ModelRequest([UserPromptPart(text)])
        for at, text in enumerate(before)
    ]
    return {"user_prompt": question, "message_history": history}


def ask(order: Order) -> Any:
    answer = agent(order).run_sync(**said(order))
    return {"pieces": [answer.output], "tokens": answer.usage.total_tokens}


def stream(order: Order) -> Any:
    async def streamed() -> Any:
        async with agent(order).run_stream(**said(order)) as answer:
            pieces = [piece async for piece in answer.stream_text(delta=True, debounce_by=None)]
            return {"pieces": pieces, "tokens": answer.usage.total_tokens}

    return asyncio.run(streamed())


def leave(order: Order) -> Any:
    async def left() -> Any:
        async with agent(order).run_stream(**said(order)) as answer:
            return {"pieces": [await anext(answer.stream_text(delta=True, debounce_by=None))]}

    return asyncio.run(left())


def tools(order: Order) -> Any:
    agent(order, output_type=City).run_sync(**said(order))


def schema(order: Order) -> Any:
    return agent(order, output_type=NativeOutput(City)).run_sync(**said(order)).output.model_dump()


serve(ask, stream, leave, tools, schema)
