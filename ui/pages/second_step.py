"""The second step at sign-in: the code that is owed, or setting it up first where the person's role needs it.

Both are reached only with the token that comes after the password, and say nothing of any account without it.
"""

from html import escape

from nicegui import app
from starlette.requests import Request
from starlette.responses import Response

from ui.entrance import Entrance
from ui.forms import field, hidden, link, notice, read_form
from ui.guard import own_path
from ui.i18n import Language
from ui.sign_in.door import SignInFailed
from ui.sign_in.pending import Pending
from ui.sign_in.second_step import picture
from ui.tries import TooManyTries


def register(entrance: Entrance) -> None:
    _register_code(entrance)
    _register_setting_up(entrance)


def _register_code(entrance: Entrance) -> None:
    door = entrance.auth.door

    def page(request: Request, next: str, *, trouble: str = "", status: int = 200) -> Response:
        say = entrance.say_to(request)
        about = say("Enter the code that your authenticator app shows now, or one of your recovery codes.")
        above = f"<p>{escape(about)}</p>{notice(trouble)}"
        fields = hidden("next", next) + code_field(say)
        title = say("Second step")
        return entrance.page(
            request, title, above, "/login/code", fields, back(entrance.base, say), button=say("Sign in"), status=status
        )

    @app.get("/login/code", include_in_schema=False)
    async def show_code(request: Request) -> Response:
        pending = door.pending(request.cookies.get(entrance.cookies.step, ""))
        if pending is None or pending.nonce:
            return _over(entrance, request)
        return page(request, own_path(request.query_params.get("next", "/")))

    @app.post("/login/code", include_in_schema=False)
    async def take_code(request: Request) -> Response:
        say, form, token = entrance.say_to(request), await read_form(request), _token(entrance, request)
        next, code = own_path(form.get("next", "/")), form.get("code", "")
        if door.pending(token) is None or not entrance.own_form(request, form):
            return _over(entrance, request)
        try:
            session = await door.by_code(token, code, agent=entrance.agent(request), address=entrance.address(request))
        except SignInFailed:
            return page(request, next, trouble=say("That code does not fit. Each works once."), status=401)
        except TooManyTries as wait:
            trouble = say("Too many tries. Please wait some minutes, then try again.")
            refused = page(request, next, trouble=trouble, status=429)
            refused.headers["Retry-After"] = str(wait.wait_s)
            return refused
        return await entrance.begin(request, entrance.away(next), session)


def _register_setting_up(entrance: Entrance) -> None:
    door = entrance.auth.door

    async def page(request: Request, pending: Pending, next: str, *, trouble: str = "", status: int = 200) -> Response:
        say = entrance.say_to(request)
        try:
            user = await door.owner(pending)
        except SignInFailed:  # disabled meanwhile
            return _over(entrance, request)
        secret = door.second_step.secret(user.id, pending.nonce)
        about = say("Your role needs a second step at sign-in: a code from an authenticator app on your phone.")
        how = say("Scan this picture with the app, or type the key into it. Then enter the code that it shows.")
        code = picture(door.second_step.address(user.name, secret), say("QR code"))
        above = (
            f"<p>{escape(about)}</p><p>{escape(how)}</p>{code}"
            f'<p class="secret">{escape(grouped(secret))}</p>{notice(trouble)}'
        )
        title, button = say("Set up the second step"), say("Turn it on")
        fields = hidden("next", next) + code_field(say)
        return entrance.page(
            request, title, above, "/login/second-step", fields, back(entrance.base, say), button=button, status=status
        )

    @app.get("/login/second-step", include_in_schema=False)
    async def show_setting_up(request: Request) -> Response:
        pending = door.pending(_token(entrance, request))
        if pending is None or not pending.nonce:
            return _over(entrance, request)
        return await page(request, pending, own_path(request.query_params.get("next", "/")))

    @app.post("/login/second-step", include_in_schema=False)
    async def set_up(request: Request) -> Response:
        say, form, token = entrance.say_to(request), await read_form(request), _token(entrance, request)
        pending, next = door.pending(token), own_path(form.get("next", "/"))
        if pending is None or not pending.nonce or not entrance.own_form(request, form):
            return _over(entrance, request)
        try:
            session, codes = await door.by_setting_up(token, form.get("code", ""), entrance.agent(request))
        except SignInFailed:
            trouble = say("That code does not fit. Is the clock of your phone right?")
            return await page(request, pending, next, trouble=trouble, status=401)
        return await entrance.begin(request, _codes_page(entrance, request, codes, next), session)


def _codes_page(entrance: Entrance, request: Request, codes: list[str], next: str) -> Response:
    say = entrance.say_to(request)
    about = say(
        "Keep these recovery codes where only you can read them; they are not shown again. "
        "Without your phone, each of them signs you in once."
    )
    listed = "".join(f"<li>{escape(code)}</li>" for code in codes)
    body = f'<p>{escape(about)}</p><ul class="codes">{listed}</ul>{link(entrance.base + next, say("Go on"))}'
    return entrance.document(request, say("Recovery codes"), body)


def _over(entrance: Entrance, request: Request) -> Response:
    say = entrance.say_to(request)
    return entrance.no_way_in(request, say("That took too long. Please sign in again."))


def _token(entrance: Entrance, request: Request) -> str:
    return request.cookies.get(entrance.cookies.step, "")


def code_field(say: Language) -> str:
    more = 'maxlength=40 autofocus autocapitalize="none" spellcheck="false"'
    return field(say("Code"), "code", complete="one-time-code", more=more)


def grouped(secret: str) -> str:
    """A secret as people can type it: in groups of four."""
    return " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))


def back(base: str, say: Language) -> str:
    return f'<p class="languages"><a href="{base}/login">{escape(say("Sign in as somebody else"))}</a></p>'
