"""POST /: one prompt, one answer, in the shape {"response", "status", "time"}; errors come in it too.

With "stream": true the pieces come as server-sent events {"response": "<piece>"}, and the last one is the whole shape
with "finish_reason". Registered after the page at "/", which would take the route away otherwise.
"""

import json
from datetime import datetime
from typing import Any

from nicegui import app
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from engine.errors import EngineError, InvalidRequest
from engine.job import Update
from engine.types import ChatRequest, Message
from ui.api.answers import Answer, EventStream, trouble_of, whole_answers
from ui.api.bodies import SimpleBody
from ui.api.calls import Calls
from ui.api.described import ASKING, Simple, asking, replies
from ui.api.errors import ApiError, as_api_error, error_headers
from ui.api.requests import read, sampling_of
from ui.api.shapes import finish_reason
from ui.desk import Desk
from ui.prompt import with_system_prompt

BUSY = "503HOT！LLM服务器推理繁忙，请稍后再试"


def register(desk: Desk, calls: Calls) -> None:
    told = replies(Simple, *ASKING, streams=True)

    @app.post("/", tags=["chat"], responses=told, openapi_extra=asking(SimpleBody))
    async def ask(request: Request) -> Response:
        """Ask with one prompt. `stream` true answers in server-sent events."""
        try:
            calls.rate.take(request.state.caller)
            body = await read(request, SimpleBody)
            if not body.prompt.strip():
                raise InvalidRequest("The prompt is empty.", param="prompt")
            messages = with_system_prompt([Message("user", body.prompt)], desk.settings.system_prompt)
            caller, id = request.state.caller, request.state.request_id
            asked = ChatRequest(
                messages=messages, sampling=sampling_of(body), person=caller.person, source="api", id=id
            )
            (answer,) = answers = await calls.answers(request, body, [asked])
            if body.stream:
                return EventStream(desk.service, answers, Pieces(answer))
            await whole_answers(desk.service, answers, request.receive)
            return JSONResponse(shape(answer.text, 200))
        except (EngineError, ApiError) as error:
            return JSONResponse(failed(error), as_api_error(error).status, error_headers(error))


def shape(response: str, status: int) -> dict[str, Any]:
    return {"response": response, "status": status, "time": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M:%S")}


def failed(error: EngineError | ApiError) -> dict[str, Any]:
    told = as_api_error(error)
    about = {"message": str(told), "type": told.type, "param": told.param, "code": told.code}
    return {**shape(BUSY if told.code == "queue_full" else str(told), told.status), "error": about}


class Pieces:
    """The frames of a streamed answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.done = answer, False

    def __call__(self, number: int, update: Update) -> list[str]:
        frames: list[dict[str, Any]] = [{"response": text} for text in update.deltas]
        if update.status.final:
            self.done = True
            trouble = trouble_of(update, self.answer.id)
            whole = {**shape(self.answer.text, 200), "finish_reason": finish_reason(update)}
            frames.append(failed(trouble) if trouble else whole)
        return [json.dumps(frame, ensure_ascii=False) for frame in frames]
