"""What every answer tells the browser to allow: as little as it works with.

Foreign text is never put in as HTML; the policy is the second line. Of scripts a page runs the files of this server and
what carries the nonce of its own answer (ui/nonces.py): a script or a handler that got into it has none. NiceGUI needs
`eval` (Vue's templates are compiled in the browser, what the server asks of a page is evaluated there) and styles in
elements. No other host is asked for anything, no form goes elsewhere, nobody frames us. Plain pages have no script at
all, and what is no page may do nothing. tests/browser/test_content_attacks.py sees that pages use all that is allowed.
"""

_ALWAYS = "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
PLAIN = f"default-src 'none'; style-src 'self'; img-src 'self'; {_ALWAYS}"
NOTHING = "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"


def page_policy(nonce: str) -> str:
    """What a page with scripts may do, those without a file having this nonce."""
    return (
        f"default-src 'none'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
        f"img-src data:; font-src 'self'; connect-src 'self'; {_ALWAYS}"
    )


def security_headers(secure: bool) -> dict[str, str]:
    """All but the policy. `secure`: people come by https, and shall not fall back to http."""
    headers = {
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    }
    return headers | ({"Strict-Transport-Security": "max-age=31536000"} if secure else {})
