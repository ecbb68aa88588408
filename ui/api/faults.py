"""What becomes of errors that a route raises, and of addresses that do not exist."""

from nicegui import app
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from engine.errors import EngineError
from ui.api.answers import Gone
from ui.api.errors import ApiError, as_api_error, error_response
from ui.base_path import base_of
from ui.forms import document, link, notice
from ui.guard import is_api
from ui.i18n import Language, language, preferred

INSTEAD = " Answers come from /v1/chat/completions and /v1/completions."  # for clients that ask /v1/responses first


def register() -> None:
    """Set the handlers. NiceGUI's page for 404 is replaced: it would keep a page in memory for every wrong address."""

    @app.exception_handler(EngineError)
    @app.exception_handler(ApiError)
    async def told(request: Request, error: Exception) -> Response:
        assert isinstance(error, EngineError | ApiError)
        return refused(request.scope, error)

    @app.exception_handler(Exception)  # NiceGUI's own page for it would show what the error says
    async def failed(request: Request, error: Exception) -> Response:
        return failure(request.scope)

    @app.exception_handler(ClientDisconnect)  # while its body was being read
    @app.exception_handler(Gone)
    async def gone(request: Request, error: Exception) -> Response:
        return Response(status_code=499)  # nobody reads it; it is for the log

    @app.exception_handler(404)
    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        response = _for_programs(request, error) if is_api(request.scope) else _for_people(request, error)
        if error.status_code == 405:
            response.headers["Allow"] = ", ".join(_methods(request.scope))
        return response


def failure(scope: Scope) -> Response:
    """What whoever asked is told of a fault of ours: where to find it in the log, and nothing else."""
    id = scope["state"]["request_id"]
    if is_api(scope):
        message = f"The server failed at this request ({id})."
        return error_response(ApiError(500, message, type="server_error", code="internal_error"))
    say = _language(scope)
    sentence = notice(say("Something went wrong here. Please try again. ({id})", id=id))
    return document(scope, say, say("That did not work"), sentence, status=500)


def refused(scope: Scope, error: EngineError | ApiError) -> Response:
    """JSON for programs; people get a page, and only trouble with the store brings it up."""
    if is_api(scope):
        return error_response(error)
    say = _language(scope)
    body = notice(say("Nothing can be saved or looked up at present. Please try again in a moment."))
    return document(scope, say, say("That did not work"), body, status=as_api_error(error).status)


def _language(scope: Scope) -> Language:
    return language(preferred(Headers(scope=scope).get("accept-language", "")))


def _for_programs(request: Request, error: HTTPException) -> Response:
    if error.status_code == 404:
        instead = INSTEAD if request.scope["path"].startswith("/v1/") else ""
        return error_response(ApiError(404, f"There is no {request.scope['path']!r} here.{instead}", code="not_found"))
    if error.status_code == 405:
        return error_response(ApiError(405, f"{request.method} is not possible here.", code="method_not_allowed"))
    return error_response(ApiError(error.status_code, str(error.detail)))


def _for_people(request: Request, error: HTTPException) -> Response:
    say = _language(request.scope)
    title = say("There is nothing at this address") if error.status_code == 404 else say("That did not work")
    home = link(f"{base_of(request)}/", say("Back to the start"))
    return document(request, say, title, home, status=error.status_code)


def _methods(scope: Scope) -> list[str]:
    """The methods that there are at this address."""
    here = [route for route in scope["app"].routes if route.matches(scope)[0] is not Match.NONE]
    methods = {method for route in here for method in getattr(route, "methods", None) or ()}
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))
