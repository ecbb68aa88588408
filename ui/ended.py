"""A session that has ended: the way to the sign-in page, which says why, and back to where somebody was.

Why is a word in the address, and the address may come from anybody: a word that is none of ours says nothing, and the
way back is looked at by whoever goes it (`own_path` of ui/guard.py). Knows nothing of accounts.
"""

from typing import Literal
from urllib.parse import quote, urlencode

from nicegui import Client

from ui.i18n import Language

Ended = Literal["", "signed-out", "disabled"]

_LEAVE = (  # unless the page is leaving by itself; where it is now is not always where it was built
    "if (!window.leaving) location.assign(window.path_prefix + '{address}&next=' + "
    "encodeURIComponent(location.pathname.slice(window.path_prefix.length) + location.search))"
)


def sign_in_address(next: str = "/", ended: Ended = "", *, lang: str = "") -> str:
    """The address of the sign-in page, with the way back unless that is the start."""
    asked = {"lang": lang, "ended": ended, "next": next if next != "/" else ""}
    query = urlencode({name: value for name, value in asked.items() if value}, safe="/", quote_via=quote)
    return f"/login?{query}" if query else "/login"


def lead_away(client: Client, ended: Ended, lang: str) -> None:
    """Send an open page to the sign-in page; `lang` is what the person has chosen, "" for the browser's."""
    client.run_javascript(_LEAVE.format(address=sign_in_address(ended=ended or "signed-out", lang=lang)))


def read_ended(asked: str) -> Ended:
    """The word of an address, if it is one of ours."""
    return "disabled" if asked == "disabled" else "signed-out" if asked == "signed-out" else ""


def why_here(ended: Ended, say: Language) -> str:
    """The sentence for somebody who was led to the sign-in page; "" for whoever came by themselves."""
    if ended == "disabled":
        return say("Your account has been disabled. Please ask an administrator.")
    return say("You have been signed out. Sign in to go on.") if ended else ""
