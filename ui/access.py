"""Who may do what: the one table. The guard asks it at every address, the sockets at every event of a page.

    rule = rule_of(scope)                            what somebody needs who asks for this
    auth.allowed(visitor, Right.REVIEW)              whether a session has a right, now
    auth.allowed(visitor, ACTIONS["review.hold"])    the same for what needs more than its page or its call does

A page's rule holds for all that is done on the page: its socket is heard, and told anything, only while the account has
the page's right. Whose conversation, key or answer it is stands in no table: the store is always asked with the
account's id, and what is somebody else's does not exist. A route without a rule stops the start (`without_rule`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

import nicegui
from starlette.routing import BaseRoute, Match, Mount
from starlette.types import Scope

if TYPE_CHECKING:
    from storage.records import UserRole


class Right(StrEnum):
    USE = "use"  # one's own conversations, answers, keys, sessions, templates and ratings
    REVIEW = "review"  # everybody's logged exchanges: read, export, label, note, assign, run again
    ADMINISTER = "administer"  # the server, its accounts, its log's age, and everybody's running requests


HOLDERS: Mapping[Right, "frozenset[UserRole]"] = {
    Right.USE: frozenset({"staff", "reviewer", "admin"}),
    Right.REVIEW: frozenset({"reviewer", "admin"}),
    Right.ADMINISTER: frozenset({"admin"}),
}


@dataclass(frozen=True, slots=True)
class Rule:
    """`way` is how somebody says who they are: not at all, by a session, or by a key.

    Where a key is asked for, a session does as well if nothing can be changed by the call, or its Origin was checked.
    """

    way: Literal["open", "session", "key"]
    right: Right = Right.USE


OPEN = Rule("open")  # before anybody is signed in, and what holds nothing of anybody
PEOPLE = Rule("session")
REVIEWERS = Rule("session", Right.REVIEW)
ADMINISTRATORS = Rule("session", Right.ADMINISTER)
PROGRAMS = Rule("key")
WATCHERS = Rule("key", Right.ADMINISTER)

_NICEGUI = f"/_nicegui/{nicegui.__version__}"

ROUTES: Mapping[str, Rule] = {
    "GET /login": OPEN,
    "POST /login": OPEN,
    "GET /login/code": OPEN,  # with the token that comes after the password
    "POST /login/code": OPEN,
    "GET /login/second-step": OPEN,
    "POST /login/second-step": OPEN,
    "GET /login/oidc": OPEN,  # the way to a provider, and back
    "GET /login/oidc/callback": OPEN,
    "GET /login/link": OPEN,  # with a token that the operator has made
    "POST /login/link": OPEN,
    "GET /setup": OPEN,  # with the token that the server has printed
    "POST /setup": OPEN,
    "GET /invite": OPEN,  # with an invitation's token
    "POST /invite": OPEN,
    "GET /livez": OPEN,
    "GET /readyz": OPEN,
    "GET /health": OPEN,
    "GET /static/{path:path}": OPEN,
    f"MOUNT {_NICEGUI}/static": OPEN,
    f"GET {_NICEGUI}/libraries/{{key:path}}": OPEN,
    f"GET {_NICEGUI}/components/{{key:path}}": OPEN,
    f"GET {_NICEGUI}/resources/{{key}}/{{path:path}}": OPEN,
    f"GET {_NICEGUI}/dynamic_resources/{{name}}": OPEN,
    f"GET {_NICEGUI}/esm/{{key}}/{{path:path}}": OPEN,
    "MOUNT /_nicegui_ws": PEOPLE,  # each page's own rule comes on top: ui/sockets.py
    "GET /favicon.ico": PEOPLE,
    "POST /logout": PEOPLE,
    "GET /": PEOPLE,
    "GET /c/{conversation_id}": PEOPLE,
    "GET /conversations/export": PEOPLE,
    "GET /conversations/{id}/export": PEOPLE,
    "POST /conversations/import": PEOPLE,
    "GET /account": PEOPLE,
    "GET /account/export": PEOPLE,
    "GET /review": REVIEWERS,
    "GET /review/export": REVIEWERS,
    "GET /review/retention": ADMINISTRATORS,
    "GET /admin": ADMINISTRATORS,
    "GET /admin/steer": ADMINISTRATORS,
    "GET /admin/history": ADMINISTRATORS,
    "GET /admin/history.csv": ADMINISTRATORS,
    "GET /admin/people": ADMINISTRATORS,
    "GET /admin/people/export": ADMINISTRATORS,
    "GET /admin/model": ADMINISTRATORS,
    "GET /admin/audit": ADMINISTRATORS,
    "GET /admin/audit/export": ADMINISTRATORS,
    "GET /docs": PEOPLE,
    "GET /openapi.json": PROGRAMS,
    "POST /": PROGRAMS,
    "POST /v1/chat/completions": PROGRAMS,
    "WS /v1/chat/ws": PROGRAMS,
    "POST /v1/completions": PROGRAMS,
    "GET /v1/models": PROGRAMS,
    "GET /v1/models/{name:path}": PROGRAMS,
    "POST /v1/tokenize": PROGRAMS,
    "POST /v1/detokenize": PROGRAMS,
    "GET /v1/requests": PROGRAMS,
    "POST /v1/requests/{id}/cancel": PROGRAMS,
    "GET /metrics": WATCHERS,
}

ACTIONS: Mapping[str, Right] = {  # what needs more than the page or the call it is done by
    "review.hold": Right.ADMINISTER,  # on the reviewers' page
    "review.release": Right.ADMINISTER,
    "review.retention": Right.ADMINISTER,
    "template.share": Right.ADMINISTER,  # on everybody's account page
    "request.others": Right.ADMINISTER,  # seeing and cancelling other people's requests by the API
}


def rule_of(scope: Scope, default: Rule) -> Rule | None:
    """The rule of the very route that will answer; None for one that has no rule, `default` where none will answer."""
    for route in scope["app"].routes:
        match, _ = route.matches(scope)
        if match is Match.FULL:
            return next((ROUTES[name] for name in _names(route, _method(scope)) if name in ROUTES), None)
    return default


def page_right(path: str) -> Right:
    """The right that a page without parameters needs."""
    return ROUTES[f"GET {path}"].right


def without_rule(routes: Iterable[BaseRoute]) -> list[str]:
    """The routes that the table does not know, as it would name them."""
    return [name for route in routes for name in names_of(route) if name not in ROUTES]


def names_of(route: BaseRoute) -> list[str]:
    """What a route is called in the table, once for each method; HEAD is answered as GET."""
    methods = getattr(route, "methods", None) or ("WS",)
    return [name for method in sorted(set(methods) - {"HEAD"}) for name in _names(route, method)]


def _names(route: BaseRoute, method: str) -> list[str]:
    path = getattr(route, "path", type(route).__name__)
    return [f"MOUNT {path}"] if isinstance(route, Mount) else [f"{method} {path}"]


def _method(scope: Scope) -> str:
    return "WS" if scope["type"] == "websocket" else str(scope["method"])
