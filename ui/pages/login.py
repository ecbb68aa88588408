"""Signing in and out: plain forms, so that a session begins with a fresh cookie."""

from html import escape

from loguru import logger
from nicegui import app
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ui.desk import Desk
from ui.ended import Ended, read_ended, sign_in_address, why_here
from ui.entrance import Entrance
from ui.forms import banner, field, hidden, notice, read_form
from ui.guard import own_path
from ui.i18n import LANGUAGES, Language
from ui.pages import new_account, second_step, sign_in_link, sign_on
from ui.sign_in.failing import DirectoryAway, SignInFailed
from ui.tries import TooManyTries


def register(desk: Desk) -> None:
    entrance, auth = Entrance(desk), desk.auth
    new_account.register(entrance)
    second_step.register(entrance)
    sign_in_link.register(entrance)
    sign_on.register(entrance)

    @app.get("/login", include_in_schema=False)
    async def show_login(request: Request) -> Response:
        next = own_path(request.query_params.get("next", "/"))
        if await auth.visitor(request.cookies.get(entrance.cookies.session, "")):
            return RedirectResponse(next, 303)
        return login_page(entrance, request, next=next, ended=read_ended(request.query_params.get("ended", "")))

    @app.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        say, form = entrance.say_to(request), await read_form(request)
        name, next = form.get("name", ""), own_path(form.get("next", "/"))
        if not entrance.own_form(request, form):
            trouble = say("This form is too old. Please sign in again.")
            return login_page(entrance, request, trouble=trouble, name=name, next=next, status=400)
        try:
            user = await auth.door.by_password(name, form.get("password", ""), entrance.address(request))
        except DirectoryAway as error:
            logger.error("the directory is away: {}", error)
            trouble = say("That did not work. The directory of accounts cannot be reached just now.")
            return login_page(entrance, request, trouble=trouble, name=name, next=next, status=503)
        except SignInFailed as refused:
            trouble = sign_on.why_not(say, refused, name) or say("That name and password do not belong together.")
            return login_page(entrance, request, trouble=trouble, name=name, next=next, status=401)
        except TooManyTries as wait:
            trouble = say("Too many tries. Please wait some minutes, then try again.")
            page = login_page(entrance, request, trouble=trouble, name=name, next=next, status=429)
            page.headers["Retry-After"] = str(wait.wait_s)
            return page
        return await entrance.let_in(request, user, next)

    @app.post("/logout", include_in_schema=False)
    async def logout(request: Request) -> Response:
        visitor, form = auth.visitor_of(request), await read_form(request)
        if visitor and not auth.form_fits(visitor.session_id, form.get("form_token", "")):
            return RedirectResponse("/", 303)
        response: Response = RedirectResponse("/login", 303)
        if visitor:
            try:  # before the page hears that it is over, and goes away by itself
                response = await sign_on.way_out(entrance, request, visitor) or response
            finally:
                await auth.sign_out(visitor.session_id)
        entrance.cookies.take_back(response, entrance.cookies.session)
        return response


def login_page(
    entrance: Entrance,
    request: Request,
    *,
    trouble: str = "",
    name: str = "",
    next: str = "/",
    ended: Ended = "",
    status: int = 200,
) -> Response:
    """`ended`: the word of ui/ended.py for why somebody was led here."""
    say = entrance.say_to(request)
    why = why_here(ended, say)
    above = (banner(why, "info", "") if why else "") + notice(trouble) + _provider(entrance, say, next)
    title, below = say("Sign in"), _languages(entrance.base, say, next, ended)
    if not entrance.asks_passwords:
        return entrance.document(request, title, above + below, status=status)
    fields = hidden("next", next) + _name_and_password(say, name)
    return entrance.page(request, title, above, "/login", fields, below, button=title, status=status)


def _provider(entrance: Entrance, say: Language, next: str) -> str:
    """The way to the OpenID provider, where there is one."""
    provider = entrance.auth.door.provider
    if provider is None:
        return ""
    text = say("Sign in with {name}", name=provider.label)
    between = f'<p class="or">{escape(say("or"))}</p>' if entrance.asks_passwords else ""
    return f'<a class="button" href="{entrance.base}{escape(sign_on.way_there(next))}">{escape(text)}</a>{between}'


def _name_and_password(say: Language, name: str) -> str:
    of_name, of_password = ("", "autofocus") if name else ("autofocus", "")
    password = field(
        say("Password"), "password", kind="password", complete="current-password", more=f"maxlength=200 {of_password}"
    )
    return field(say("Name"), "name", value=name, complete="username", more=f"maxlength=64 {of_name}") + password


def _languages(base: str, say: Language, next: str, ended: Ended) -> str:
    links = [
        f'<a href="{base}{escape(sign_in_address(next, ended, lang=code))}" lang="{code}">{name}</a>'
        for code, name in LANGUAGES.items()
        if code != say.code
    ]
    return f'<p class="languages">{" ".join(links)}</p>'
