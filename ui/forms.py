"""Plain HTML pages with plain forms, for what must work before anybody is signed in: no script, no socket.

Knows nothing of accounts. Every text that is put in is escaped here.
"""

from html import escape
from urllib.parse import parse_qsl

from starlette.requests import HTTPConnection, Request
from starlette.responses import HTMLResponse
from starlette.types import Scope

from ui.banner import Banner
from ui.base_path import base_of
from ui.headers import PLAIN
from ui.i18n import Language
from ui.static_files import stylesheet

MAX_FORM_BYTES = 16 * 1024


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a posted form; {} when it is too large or is not a form."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            return {}
    try:
        return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=20))
    except (UnicodeDecodeError, ValueError):
        return {}


def document(
    asked: Scope | HTTPConnection,
    say: Language,
    title: str,
    body: str,
    *,
    status: int = 200,
    leads_to: str = "",
) -> HTMLResponse:
    """A page around `body`, which is HTML already, for whoever `asked`, below the administrators' banner.

    The browser goes on to `leads_to` by itself. That stands in the page and not in a header, since proxies take no long
    ones: nginx has 4 KB for all of them.
    """
    base = base_of(asked)
    goes_on = f'<meta http-equiv="refresh" content="0; url={escape(leads_to)}">' if leads_to else ""
    return HTMLResponse(
        f'<!doctype html><html lang="{say.tag}"><head><meta charset="utf-8"><title>{escape(title)} · Qdesk</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'{goes_on}<link rel="icon" href="{base}/static/qdesk.svg">'
        f"{stylesheet('tokens.css', base)}{stylesheet('forms.css', base)}</head>"
        f'<body class="body--system"><main><p class="brand"><img src="{base}/static/qdesk.svg" alt="" width="32" '
        f'height="32">Qdesk</p><h1>{escape(title)}</h1>{_hanging(asked, say)}{body}</main></body></html>',
        status,
        {"Cache-Control": "no-store", "Content-Security-Policy": PLAIN},
    )


def notice(text: str) -> str:
    return f'<p class="notice" role="alert">{escape(text)}</p>' if text else ""


def banner(text: str, level: str, until: str = "") -> str:
    """The administrators' banner; `until` says when it goes, or nothing."""
    ends = f"<br><small>{escape(until)}</small>" if until else ""
    return f'<p class="notice {escape(level)}" role="status">{escape(text)}{ends}</p>'


def _hanging(asked: Scope | HTTPConnection, say: Language) -> str:
    """The banner that is up while this is `asked` (ui/entry.py knows), as HTML; "" for none."""
    scope = asked.scope if isinstance(asked, HTTPConnection) else asked
    up: Banner | None = scope["state"]["banner"]
    if up is None:
        return ""
    return banner(up.text, up.level, say("until {when}", when=say.utc(up.until)) if up.until else "")


def field(
    label: str, name: str, *, kind: str = "text", value: str = "", complete: str = "off", more: str = "", hint: str = ""
) -> str:
    about = f'<small id="{name}-hint">{escape(hint)}</small>' if hint else ""
    more += f' aria-describedby="{name}-hint"' if hint else ""
    return (
        f'<div class="field"><label>{escape(label)}<input type="{kind}" name="{name}" value="{escape(value)}" '
        f'autocomplete="{complete}" required {more}></label>{about}</div>'
    )


def hidden(name: str, value: str) -> str:
    return f'<input type="hidden" name="{name}" value="{escape(value)}">'


def link(address: str, text: str) -> str:
    return f'<p><a href="{escape(address)}">{escape(text)}</a></p>'
