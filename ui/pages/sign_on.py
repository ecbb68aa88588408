"""Signing in with an OpenID provider: the way there, and back, where somebody signs in or connects their account."""

from urllib.parse import quote

from loguru import logger
from nicegui import app
from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from engine.settings import Settings
from ui.entrance import Entrance
from ui.forms import document, link, notice
from ui.guard import own_path
from ui.i18n import Language
from ui.people import Visitor
from ui.sign_in.failing import SignInFailed
from ui.sign_in.outside import Known, NoAccount
from ui.sign_in.trips import Declined, NotVouchedFor, ProviderAway, Trip, WrongDomain
from ui.tries import TooManyTries

BACK = "/login/oidc/callback"


def redirect_uri(settings: Settings, asked: HTTPConnection) -> str:
    """Where the provider sends the browser back to."""
    return this_server(settings, asked) + BACK


def this_server(settings: Settings, asked: HTTPConnection) -> str:
    """This server's address as the operator names it, else as the browser does."""
    return settings.public_url.rstrip("/") or str(asked.base_url).rstrip("/")


def way_there(next: str) -> str:
    return f"/login/oidc?next={quote(next)}" if next != "/" else "/login/oidc"


def register(entrance: Entrance) -> None:
    auth, settings, provider = entrance.auth, entrance.desk.settings, entrance.auth.door.provider
    cookies = entrance.cookies

    @app.get("/login/oidc", include_in_schema=False)
    async def leave(request: Request) -> Response:
        if provider is None:
            return entrance.away("/login")
        next, (cookie, _) = own_path(request.query_params.get("next", "/")), entrance.form_token(request)
        try:
            auth.door.tries.leave(entrance.address(request))
            address = await provider.begin(Trip(cookie, next, redirect_uri(settings, request)))
        except (ProviderAway, TooManyTries) as trouble:
            return _refused(entrance, request, trouble)
        response = RedirectResponse(address, 303)
        cookies.put(response, cookies.form, cookie)
        return response

    @app.get(BACK, include_in_schema=False)
    async def come_back(request: Request) -> Response:
        if provider is None:
            return entrance.away("/login")
        visitor = await auth.visitor(request.cookies.get(cookies.session, ""))
        browser, session_id = request.cookies.get(cookies.form, ""), visitor.session_id if visitor else ""
        try:
            trip, known = await provider.finish(request.query_params, browser, session_id)
            if visitor and trip.session_id:
                return await _connect(entrance, request, visitor, known)
            user = await auth.door.of_provider.account(known)
        except NoAccount as refused:
            return entrance.no_way_in(request, _reasons(entrance.say_to(request), known.name)[refused.why])
        except (ProviderAway, NotVouchedFor, Declined, WrongDomain) as trouble:
            return _refused(entrance, request, trouble)
        return await entrance.let_in(request, user, trip.next, known.id_token)


async def way_out(entrance: Entrance, request: Request, visitor: Visitor) -> Response | None:
    """A page that goes on to the provider, to end its session as well; None: only the one here ends.

    It is a page, since a form may lead to no other host, not even by a redirect (ui/headers.py).
    """
    provider, settings = entrance.auth.door.provider, entrance.desk.settings
    if provider is None or not settings.oidc_logout:
        return None
    id_token = await entrance.desk.store.sessions.id_token(visitor.session_id)
    back = this_server(settings, request) + "/login"
    address = await provider.way_out(id_token, back) if id_token else ""
    if not address:
        return None
    say = entrance.say_to(request)
    about = say("You are signed out here. Now {name} signs you out as well.", name=provider.label)
    body = notice(about) + link(address, say("Go on"))
    return document(request, say, say("Signed out"), body, leads_to=address)


async def _connect(entrance: Entrance, request: Request, visitor: Visitor, known: Known) -> Response:
    """Let the provider's word open the visitor's account from now on."""
    store, name = entrance.desk.store, visitor.user.name
    if not await store.identities.link(visitor.user.id, known.issuer, known.subject):
        why = entrance.say_to(request)("That sign-in belongs to an account here already.")
        return entrance.no_way_in(request, why, status=409)
    await store.audit.add(name, "user.connect", name, known.issuer)
    return entrance.away("/account")


def _refused(entrance: Entrance, request: Request, trouble: Exception) -> Response:
    say, door = entrance.say_to(request), entrance.auth.door
    name = door.provider.label if door.provider else ""
    match trouble:
        case TooManyTries():
            why = say("Too many tries. Please wait some minutes, then try again.")
            return entrance.no_way_in(request, why, status=429)
        case ProviderAway():
            logger.error("the provider of sign-ins is away: {}", trouble)
            why = say("{name} cannot be reached just now. Please try again later.", name=name)
            if entrance.asks_passwords:
                why = say("{name} cannot be reached just now. Accounts of this server can still sign in.", name=name)
            return entrance.no_way_in(request, why, status=503)
        case Declined():
            return entrance.no_way_in(request, say("{name} did not let you in.", name=name))
        case WrongDomain():
            why = say("{name} knows no verified e-mail address of yours that may come in here.", name=name)
            return entrance.no_way_in(request, why)
    logger.warning("a sign-in from {} was not {}'s: {}", entrance.address(request), name, trouble)
    return entrance.no_way_in(request, say("Signing in with {name} did not work. Please try again.", name=name))


def _reasons(say: Language, name: str) -> dict[str, str]:
    return {
        "unknown": say("There is no account for you here yet. Please ask an administrator."),
        "taken": say(
            "There is an account {name} here already. If it is yours, sign in with its password and connect it on its "
            "account page; else ask an administrator.",
            name=name,
        ),
        "name": say("What you are called there cannot be the name of an account here. Please ask an administrator."),
        "role": say("You are in no group that may use this server. Please ask an administrator."),
        "disabled": say("Your account here is disabled. Please ask an administrator."),
    }


def why_not(say: Language, refused: SignInFailed, name: str) -> str:
    """Why somebody whom the directory knows gets no account; "" where that is not for them to know."""
    if not isinstance(refused, NoAccount) or refused.why == "disabled":
        return ""
    return _reasons(say, name)[refused.why]
