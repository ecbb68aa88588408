"""The cookies: what they are called, and who may read them. Knows nothing of what is in them.

Under https their names begin with `__Host-`: a browser takes such a cookie only from this very host over https, so that
neither another name of the same domain nor somebody on the network can put one of theirs in its place. Such a cookie is
the whole host's, so below a path of another site it is `__Secure-`: by https alone, and for our path.
"""

from starlette.responses import Response

from engine.settings import Settings

HOST_ONLY, BY_HTTPS = "__Host-", "__Secure-"


class Cookies:
    def __init__(self, settings: Settings) -> None:
        self._secure = settings.public_url.startswith("https://")
        self._path = settings.base_path or "/"
        prefix = (BY_HTTPS if settings.base_path else HOST_ONLY) if self._secure else ""
        self.session = prefix + "qdesk_session"
        self.form = prefix + "qdesk_form"  # of forms on pages without a session
        self.step = prefix + "qdesk_step"  # of who still owes a code

    def put(self, response: Response, name: str, value: str, lasts_s: int | None = None) -> None:
        """Without `lasts_s` it goes with the browser's window."""
        response.set_cookie(name, value, lasts_s, path=self._path, httponly=True, samesite="lax", secure=self._secure)

    def take_back(self, response: Response, name: str) -> None:
        response.delete_cookie(name, path=self._path, httponly=True, samesite="lax", secure=self._secure)
