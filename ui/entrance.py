"""What the plain pages before a session share: their language, their forms, and how a session or the next step begins.

A form on a page without a session carries a token too: the seal of a random cookie that came with the form.
"""

import secrets
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from ui.cookies import Cookies
from ui.desk import Desk
from ui.forms import document, hidden, notice
from ui.guard import own_path
from ui.i18n import LANGUAGES, Language, language, preferred
from ui.sign_in.door import Admission
from ui.sign_in.pending import LASTS_S

if TYPE_CHECKING:
    from storage.records import User


class Entrance:
    def __init__(self, desk: Desk) -> None:
        self.desk, self.auth, self.cookies = desk, desk.auth, Cookies(desk.settings)
        self.base = desk.settings.base_path

    @property
    def asks_passwords(self) -> bool:
        """Whether there is anybody who signs in with a name and a password."""
        return self.desk.settings.password_sign_in or self.auth.door.directory is not None

    def say_to(self, request: Request) -> Language:
        chosen = request.query_params.get("lang", "")
        return language(chosen if chosen in LANGUAGES else preferred(request.headers.get("accept-language", "")))

    # --- forms ---

    def form_token(self, request: Request) -> tuple[str, str]:
        """The random cookie of this browser's forms, and the hidden field that goes with it."""
        cookie = request.cookies.get(self.cookies.form) or secrets.token_urlsafe(24)
        return cookie, hidden("form_token", self.auth.seal("form", cookie))

    def own_form(self, request: Request, form: dict[str, str]) -> bool:
        cookie = request.cookies.get(self.cookies.form, "")
        return bool(cookie) and self.auth.seal.fits("form", cookie, form.get("form_token", ""))

    def document(self, request: Request, title: str, body: str, *, status: int = 200) -> HTMLResponse:
        return document(request, self.say_to(request), title, body, status=status)

    def page(self, request: Request, title: str, above: str, action: str, fields: str, below: str = "", *,
             button: str, status: int = 200) -> Response:  # fmt: skip
        """A page with one form; all but `title` and `button` is HTML already."""
        cookie, token = self.form_token(request)
        send = f'<button type="submit">{escape(button)}</button>'
        form = f'<form method="post" action="{self.base}{action}">{token}{fields}{send}</form>'
        response = self.document(request, title, above + form + below, status=status)
        self.cookies.put(response, self.cookies.form, cookie)
        return response

    def no_way_in(self, request: Request, why: str, *, status: int = 403) -> Response:
        """What is shown where nobody can sign in: `why`, and the way to try anew."""
        say = self.say_to(request)
        body = f'{notice(why)}<p><a href="{self.base}/login">{escape(say("Sign in"))}</a></p>'
        return self.document(request, say("Welcome to Qdesk"), body, status=status)

    # --- the way in ---

    async def let_in(self, request: Request, user: "User", next: str, id_token: str = "") -> Response:
        """A session for somebody who has shown that they are this person; first the second step, if they owe it."""
        admission = await self.auth.door.admit(user, self.agent(request), id_token)
        if not admission.owed:
            return await self.begin(request, self.away(next), admission.token)
        return self._owing(admission, own_path(next))

    async def begin(self, request: Request, response: Response, token: str) -> Response:
        """Give the browser its new session, and end the one that it had before."""
        if before := await self.auth.visitor(request.cookies.get(self.cookies.session, "")):
            await self.auth.sign_out(before.session_id)
        self.cookies.put(response, self.cookies.session, token, int(self.auth.lifetime.total_seconds()))
        if self.cookies.step in request.cookies:
            self.cookies.take_back(response, self.cookies.step)
        return response

    def away(self, next: str) -> Response:
        return RedirectResponse(own_path(next), 303)

    def _owing(self, admission: Admission, next: str) -> Response:
        path = "/login/code" if admission.owed == "code" else "/login/second-step"
        response = RedirectResponse(f"{path}?next={quote(next)}" if next != "/" else path, 303)
        self.cookies.put(response, self.cookies.step, admission.token, int(LASTS_S))
        return response

    def agent(self, request: Request) -> str:
        return request.headers.get("user-agent", "")

    def address(self, request: Request) -> str:
        return request.client.host if request.client else ""
