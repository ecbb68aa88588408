"""Signing in by a link that the operator has made: as whom it shows first, so that a preview uses nothing up."""

from html import escape

from nicegui import app
from starlette.requests import Request
from starlette.responses import Response

from ui.entrance import Entrance
from ui.forms import hidden, read_form
from ui.sign_in.links import owner_of, use


def register(entrance: Entrance) -> None:
    store, seal = entrance.desk.store, entrance.auth.seal

    @app.get("/login/link", include_in_schema=False)
    async def show(request: Request) -> Response:
        say, token = entrance.say_to(request), request.query_params.get("token", "")
        user = await owner_of(store, seal, token)
        if user is None:
            return _over(entrance, request)
        about = say("This link signs you in as {name}, once.", name=user.name)
        title, fields = say("Sign in"), hidden("token", token)
        return entrance.page(request, title, f"<p>{escape(about)}</p>", "/login/link", fields, button=title)

    @app.post("/login/link", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        form = await read_form(request)
        if not entrance.own_form(request, form):
            return _over(entrance, request)
        user = await use(store, seal, form.get("token", ""))
        return await entrance.let_in(request, user, "/") if user else _over(entrance, request)


def _over(entrance: Entrance, request: Request) -> Response:
    return entrance.no_way_in(request, entrance.say_to(request)("This link was used already, or is too old."))
