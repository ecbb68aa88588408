"""The first administrator's account, and those of invited people: each is made by a link, with a plain form."""

from html import escape
from typing import TYPE_CHECKING

from nicegui import app
from starlette.requests import Request
from starlette.responses import Response

from ui.accounts import name_trouble, password_trouble
from ui.entrance import Entrance
from ui.forms import field, hidden, notice, read_form
from ui.i18n import Language
from ui.invitations import accept, invitation
from ui.passwords import MIN_LENGTH, TooManyHashes

if TYPE_CHECKING:
    from storage.records import Invite


def register(entrance: Entrance) -> None:
    _register_setup(entrance)
    _register_invitations(entrance)


def _register_setup(entrance: Entrance) -> None:
    setup = entrance.auth.setup

    def page(request: Request, token: str, *, trouble: str = "", name: str = "", status: int = 200) -> Response:
        about = entrance.say_to(request)("This makes the first account, which administers this server.")
        return _page(entrance, request, "/setup", about, token, trouble=trouble, name=name, status=status)

    def closed(request: Request) -> Response:
        say = entrance.say_to(request)
        why = say("This link is not valid (any more). The server prints the newest one as long as there is no account.")
        return entrance.no_way_in(request, why)

    @app.get("/setup", include_in_schema=False)
    async def show_setup(request: Request) -> Response:
        token = request.query_params.get("token", "")
        return page(request, token) if setup.opens(token) else closed(request)

    @app.post("/setup", include_in_schema=False)
    async def set_up(request: Request) -> Response:
        say, form = entrance.say_to(request), await read_form(request)
        token, name, password = form.get("token", ""), form.get("name", "").strip(), form.get("password", "")
        if not setup.opens(token) or not entrance.own_form(request, form):
            return closed(request)
        trouble = name_trouble(say, name) or password_trouble(say, password, form.get("again", ""))
        if trouble:
            return page(request, token, trouble=trouble, name=name, status=400)
        try:
            user = await setup.make(name, password)
        except TooManyHashes:
            return page(request, token, trouble=_busy(say), name=name, status=429)
        return await entrance.let_in(request, user, "/") if user else closed(request)


def _register_invitations(entrance: Entrance) -> None:
    desk = entrance.desk

    def page(
        request: Request, token: str, known: "Invite", *, trouble: str = "", name: str = "", status: int = 200
    ) -> Response:
        say = entrance.say_to(request)
        about = say("{name} invites you to Qdesk. Choose how you will sign in.", name=known.invited_by)
        name, fixed = known.name or name, bool(known.name)
        return _page(entrance, request, "/invite", about, token, trouble=trouble, name=name, fixed=fixed, status=status)

    async def open_invitation(token: str) -> "Invite | None":
        """None too where passwords are turned off: the account would be one that nothing opens."""
        return await invitation(desk, token) if desk.settings.password_sign_in else None

    def over(request: Request) -> Response:
        say = entrance.say_to(request)
        return entrance.no_way_in(
            request, say("This invitation was used already, or is too old. Please ask for a new one.")
        )

    @app.get("/invite", include_in_schema=False)
    async def show_invite(request: Request) -> Response:
        token = request.query_params.get("token", "")
        known = await open_invitation(token)
        return page(request, token, known) if known else over(request)

    @app.post("/invite", include_in_schema=False)
    async def take_invite(request: Request) -> Response:
        say, form = entrance.say_to(request), await read_form(request)
        token, name, password = form.get("token", ""), form.get("name", "").strip(), form.get("password", "")
        known = await open_invitation(token)
        if known is None or not entrance.own_form(request, form):
            return over(request)
        name = known.name or name
        trouble = name_trouble(say, name) or password_trouble(say, password, form.get("again", ""))
        if trouble:
            return page(request, token, known, trouble=trouble, name=name, status=400)
        try:
            made = await accept(desk, token, name, password)
        except TooManyHashes:
            return page(request, token, known, trouble=_busy(say), name=name, status=429)
        if made == "over":
            return over(request)
        if made == "taken":
            trouble = say("There is an account of that name already.")
            return page(request, token, known, trouble=trouble, name=name, status=409)
        await desk.store.audit.add(made.name, "invite.accept", made.name, f"invited by {known.invited_by}")
        return await entrance.let_in(request, made, "/")


def _page(
    entrance: Entrance, request: Request, action: str, about: str, token: str, *,
    trouble: str, name: str, fixed: bool = False, status: int,
) -> Response:  # fmt: skip
    """The form with which somebody makes an account by a link; a `fixed` name cannot be changed."""
    say = entrance.say_to(request)
    above = f"<p>{escape(about)}</p>{notice(trouble)}"
    fields = hidden("token", token) + _fields(say, name, fixed)
    title, button = say("Welcome to Qdesk"), say("Make the account")
    return entrance.page(request, title, above, action, fields, button=button, status=status)


def _fields(say: Language, name: str, fixed: bool) -> str:
    of_name = "readonly" if fixed else "" if name else "autofocus"
    of_password = "maxlength=200 autofocus" if name else "maxlength=200"
    hint = say("At least {n} characters.", n=MIN_LENGTH)
    return (
        field(say("Name"), "name", value=name, complete="username", more=f"maxlength=64 {of_name}")
        + field(say("Password"), "password", kind="password", complete="new-password", more=of_password, hint=hint)
        + field(say("Password again"), "again", kind="password", complete="new-password", more="maxlength=200")
    )


def _busy(say: Language) -> str:
    return say("Many people are signing in just now. Please try again.")
