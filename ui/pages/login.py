"""Signing in and out, the first administrator, invitations: plain forms, so that a session begins with a fresh cookie.

A form on a page without a session carries a token too: the seal of a random cookie that came with the form.
"""

import secrets
from html import escape
from typing import TYPE_CHECKING, Literal, TypedDict
from urllib.parse import quote

from nicegui import app
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ui.accounts import name_trouble, password_trouble
from ui.auth import SignInFailed, TooManyTries
from ui.base_path import base_of
from ui.desk import Desk
from ui.forms import banner, document, field, hidden, link, notice, read_form
from ui.guard import COOKIE, own_path
from ui.i18n import LANGUAGES, Language, language, preferred
from ui.invitations import accept, invitation
from ui.passwords import MIN_LENGTH, TooManyHashes

if TYPE_CHECKING:
    from storage.records import Invite

FORM_COOKIE = "qdesk_form"


class _Cookies(TypedDict):
    """What all cookies of ours are like."""

    path: str
    httponly: bool
    samesite: Literal["lax"]
    secure: bool


def register(desk: Desk) -> None:
    auth, base = desk.auth, desk.settings.base_path
    cookies = _Cookies(
        path=base or "/", httponly=True, samesite="lax", secure=desk.settings.public_url.startswith("https://")
    )

    def say_to(request: Request) -> Language:
        chosen = request.query_params.get("lang", "")
        return language(chosen if chosen in LANGUAGES else preferred(request.headers.get("accept-language", "")))

    def sealed(request: Request) -> tuple[str, str]:
        """The random cookie of this browser's forms, and the token that goes with it."""
        cookie = request.cookies.get(FORM_COOKIE) or secrets.token_urlsafe(24)
        return cookie, auth.seal("form", cookie)

    def own_form(request: Request, form: dict[str, str]) -> bool:
        cookie = request.cookies.get(FORM_COOKIE, "")
        return bool(cookie) and auth.seal.fits("form", cookie, form.get("form_token", ""))

    def with_form_cookie(response: Response, cookie: str) -> Response:
        response.set_cookie(FORM_COOKIE, cookie, **cookies)
        return response

    async def signed_in(request: Request, target: str, token: str) -> Response:
        """Begin the new session, and end the one that this browser had before."""
        if before := await auth.visitor(request.cookies.get(COOKIE, "")):
            await auth.sign_out(before.session_id)
        response = RedirectResponse(target, 303)
        lifetime = int(auth.lifetime.total_seconds())
        response.set_cookie(COOKIE, token, lifetime, **cookies)
        return response

    def login_page(
        request: Request, *, trouble: str = "", name: str = "", next: str = "/", status: int = 200
    ) -> Response:
        say, (cookie, token) = say_to(request), sealed(request)
        up = desk.board.now
        above = (banner(up.text, up.level) if up else "") + notice(trouble)
        body = (
            f'{above}<form method="post" action="{base}/login">{hidden("form_token", token)}{hidden("next", next)}'
            + field(
                say("Name"), "name", value=name, complete="username", more=f"maxlength=64 {'' if name else 'autofocus'}"
            )
            + field(
                say("Password"),
                "password",
                kind="password",
                complete="current-password",
                more=f"maxlength=200 {'autofocus' if name else ''}",
            )
            + f'<button type="submit">{escape(say("Sign in"))}</button></form>{_languages(base, say, next)}'
        )
        return with_form_cookie(document(request, say, say("Sign in"), body, status=status), cookie)

    @app.get("/login", include_in_schema=False)
    async def show_login(request: Request) -> Response:
        next = own_path(request.query_params.get("next", "/"))
        if await auth.visitor(request.cookies.get(COOKIE, "")):
            return RedirectResponse(next, 303)
        return login_page(request, next=next)

    @app.post("/login", include_in_schema=False)
    async def login(request: Request) -> Response:
        say, form = say_to(request), await read_form(request)
        name, next = form.get("name", ""), own_path(form.get("next", "/"))
        if not own_form(request, form):
            trouble = say("This form is too old. Please sign in again.")
            return login_page(request, trouble=trouble, name=name, next=next, status=400)
        agent, address = request.headers.get("user-agent", ""), request.client.host if request.client else ""
        try:
            token = await auth.sign_in(name, form.get("password", ""), agent=agent, address=address)
        except SignInFailed:
            trouble = say("That name and password do not belong together.")
            return login_page(request, trouble=trouble, name=name, next=next, status=401)
        except TooManyTries as wait:
            trouble = say("Too many tries. Please wait some minutes, then try again.")
            page = login_page(request, trouble=trouble, name=name, next=next, status=429)
            page.headers["Retry-After"] = str(wait.wait_s)
            return page
        return await signed_in(request, next, token)

    def setup_page(request: Request, token: str, *, trouble: str = "", name: str = "", status: int = 200) -> Response:
        say, (cookie, form_token) = say_to(request), sealed(request)
        about = say("This makes the first account, which administers this server.")
        body = f'<p>{escape(about)}</p>{notice(trouble)}<form method="post" action="{base}/setup">' + account_fields(
            say, form_token, token, name
        )
        return with_form_cookie(document(request, say, say("Welcome to Qdesk"), body, status=status), cookie)

    def setup_closed(request: Request) -> Response:
        say = say_to(request)
        why = say("This link is not valid (any more). The server prints the newest one as long as there is no account.")
        return no_way_in(request, say, why)

    @app.get("/setup", include_in_schema=False)
    async def show_setup(request: Request) -> Response:
        token = request.query_params.get("token", "")
        return setup_page(request, token) if auth.setup.opens(token) else setup_closed(request)

    @app.post("/setup", include_in_schema=False)
    async def set_up(request: Request) -> Response:
        say, form = say_to(request), await read_form(request)
        token, name, password = form.get("token", ""), form.get("name", "").strip(), form.get("password", "")
        if not auth.setup.opens(token) or not own_form(request, form):
            return setup_closed(request)
        trouble = name_trouble(say, name) or password_trouble(say, password, form.get("again", ""))
        if trouble:
            return setup_page(request, token, trouble=trouble, name=name, status=400)
        try:
            user = await auth.setup.make(name, password)
        except TooManyHashes:
            return setup_page(request, token, trouble=_busy(say), name=name, status=429)
        if user is None:
            return setup_closed(request)
        return await signed_in(request, "/", await auth.start_session(user, request.headers.get("user-agent", "")))

    def invite_page(
        request: Request, token: str, known: "Invite", *, trouble: str = "", name: str = "", status: int = 200
    ) -> Response:
        say, (cookie, form_token) = say_to(request), sealed(request)
        about = say("{name} invites you to Qdesk. Choose how you will sign in.", name=known.invited_by)
        body = f'<p>{escape(about)}</p>{notice(trouble)}<form method="post" action="{base}/invite">' + account_fields(
            say, form_token, token, known.name or name, fixed=bool(known.name)
        )
        return with_form_cookie(document(request, say, say("Welcome to Qdesk"), body, status=status), cookie)

    def invite_over(request: Request) -> Response:
        say = say_to(request)
        return no_way_in(
            request, say, say("This invitation was used already, or is too old. Please ask for a new one.")
        )

    @app.get("/invite", include_in_schema=False)
    async def show_invite(request: Request) -> Response:
        token = request.query_params.get("token", "")
        known = await invitation(desk, token)
        return invite_page(request, token, known) if known else invite_over(request)

    @app.post("/invite", include_in_schema=False)
    async def take_invite(request: Request) -> Response:
        say, form = say_to(request), await read_form(request)
        token, name, password = form.get("token", ""), form.get("name", "").strip(), form.get("password", "")
        known = await invitation(desk, token)
        if known is None or not own_form(request, form):
            return invite_over(request)
        name = known.name or name
        trouble = name_trouble(say, name) or password_trouble(say, password, form.get("again", ""))
        if trouble:
            return invite_page(request, token, known, trouble=trouble, name=name, status=400)
        try:
            made = await accept(desk, token, name, password)
        except TooManyHashes:
            return invite_page(request, token, known, trouble=_busy(say), name=name, status=429)
        if made == "over":
            return invite_over(request)
        if made == "taken":
            trouble = say("There is an account of that name already.")
            return invite_page(request, token, known, trouble=trouble, name=name, status=409)
        await desk.store.audit.add(made.name, "invite.accept", made.name, f"invited by {known.invited_by}")
        return await signed_in(request, "/", await auth.start_session(made, request.headers.get("user-agent", "")))

    @app.post("/logout", include_in_schema=False)
    async def logout(request: Request) -> Response:
        visitor, form = auth.visitor_of(request), await read_form(request)
        if visitor and not auth.form_fits(visitor.session_id, form.get("form_token", "")):
            return RedirectResponse("/", 303)
        if visitor:
            await auth.sign_out(visitor.session_id)
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE, **cookies)
        return response


def _busy(say: Language) -> str:
    return say("Many people are signing in just now. Please try again.")


def _languages(base: str, say: Language, next: str) -> str:
    links = [
        f'<a href="{base}/login?lang={code}&amp;next={escape(quote(next))}" lang="{code}">{name}</a>'
        for code, name in LANGUAGES.items()
        if code != say.code
    ]
    return f'<p class="languages">{" ".join(links)}</p>'


def account_fields(say: Language, form_token: str, token: str, name: str, *, fixed: bool = False) -> str:
    """The fields with which somebody makes an account by a link; a `fixed` name cannot be changed."""
    of_name = "readonly" if fixed else "" if name else "autofocus"
    of_password = "maxlength=200 autofocus" if name else "maxlength=200"
    hint = say("At least {n} characters.", n=MIN_LENGTH)
    return (
        hidden("form_token", form_token)
        + hidden("token", token)
        + field(say("Name"), "name", value=name, complete="username", more=f"maxlength=64 {of_name}")
        + field(say("Password"), "password", kind="password", complete="new-password", more=of_password, hint=hint)
        + field(say("Password again"), "again", kind="password", complete="new-password", more="maxlength=200")
        + f'<button type="submit">{escape(say("Make the account"))}</button></form>'
    )


def no_way_in(request: Request, say: Language, why: str) -> Response:
    """What a link shows that makes no account any more."""
    body = f"{notice(why)}{link(f'{base_of(request)}/login', say('Sign in'))}"
    return document(request, say, say("Welcome to Qdesk"), body, status=403)
