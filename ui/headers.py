"""What every answer tells the browser to allow: as little as it works with.

NiceGUI's pages need inline scripts and `eval` (Vue's templates are compiled in the browser), so what keeps foreign text
from running there is that none of it is ever put in as HTML. The policy's part: no other host is asked for anything, no
form goes elsewhere, nobody frames us. Plain pages have no script at all, and what is no page may do nothing.
"""

_ALWAYS = "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
PAGE = (
    "default-src 'none'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    f"img-src 'self' data:; font-src 'self' data:; connect-src 'self'; manifest-src 'self'; {_ALWAYS}"
)
PLAIN = f"default-src 'none'; style-src 'self'; img-src 'self'; {_ALWAYS}"
NOTHING = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"


def security_headers(secure: bool) -> dict[str, str]:
    """`secure`: people come by https, and shall not fall back to http."""
    headers = {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        "Content-Security-Policy": PAGE,
    }
    return headers | ({"Strict-Transport-Security": "max-age=31536000"} if secure else {})
