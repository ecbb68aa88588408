"""What went wrong, as programs see it: the one place that turns errors into status, body and headers.

The body is always {"error": {"message", "type", "param", "code"}}. Never holds a stack trace.
"""

import math
from typing import Any

from starlette.responses import JSONResponse, Response

from engine.errors import EngineError, InvalidRequest

STATUS = {
    "queue_full": 503,
    "user_limit": 429,
    "model_loading": 503,
    "engine_failed": 503,
    "paused": 503,
    "draining": 503,
    "log_failed": 503,
    "storage_unavailable": 503,
    "invalid_request": 400,
    "context_length_exceeded": 400,
    "engine_error": 500,
    "access_ended": 401,
}


class ApiError(Exception):
    """An error of the API itself, beside those of the engine."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.type, self.param, self.code, self.retry_after_s = status, type, param, code, retry_after_s


def as_api_error(error: EngineError | ApiError) -> ApiError:
    """The engine's error as the API tells it; codes that nobody listed are a 500."""
    if isinstance(error, ApiError):
        return error
    status = STATUS.get(error.code, 500)
    param = error.param if isinstance(error, InvalidRequest) else None
    retry = error.retry_after_s if status in (429, 503) else None
    if retry is None and status in (429, 503):
        retry = 1.0 if status == 429 else 5.0
    return ApiError(status, str(error), type=_type(status), param=param, code=error.code, retry_after_s=retry)


def _type(status: int) -> str:
    match status:
        case 429:
            return "rate_limit_error"
        case 400:
            return "invalid_request_error"
        case _:
            return "server_error"


def error_body(error: EngineError | ApiError) -> dict[str, Any]:
    told = as_api_error(error)
    return {"error": {"message": str(told), "type": told.type, "param": told.param, "code": told.code}}


def error_headers(error: EngineError | ApiError) -> dict[str, str]:
    seconds = as_api_error(error).retry_after_s
    return {} if seconds is None else {"Retry-After": str(max(1, math.ceil(seconds)))}


def error_response(error: EngineError | ApiError) -> Response:
    return JSONResponse(error_body(error), as_api_error(error).status, error_headers(error))
