"""OpenAI's plain completions: a text is continued as it is, without system prompt and chat template."""

from nicegui import app
from starlette.requests import Request
from starlette.responses import Response

from ui.api.bodies import CompletionBody
from ui.api.calls import Calls
from ui.api.described import ASKING, Completion, asking, replies
from ui.api.openai import answered, check_running_model
from ui.api.requests import prompts_of, read, requests_of
from ui.api.shapes import TextShape
from ui.desk import Desk


def register(desk: Desk, calls: Calls) -> None:
    told = replies(Completion, *ASKING, streams=True)

    @app.post("/v1/completions", tags=["chat"], responses=told, openapi_extra=asking(CompletionBody))
    async def completions(request: Request) -> Response:
        """Continue a text, or up to 8. `stream` true answers in server-sent events."""
        calls.rate.take(request.state.caller)
        body = await read(request, CompletionBody)
        check_running_model(desk, body.model)
        asked = requests_of(body, prompts_of(body), request.state.caller, request.state.request_id)
        shape = TextShape([one.prompt if body.echo else "" for one in asked])
        return await answered(desk, request, body, shape, await calls.answers(request, body, asked))
