"""By which names this server may be addressed, and whose pages may call it with a person's cookie.

A name that is not on the list gets no page: otherwise another site could point its own name at this machine (DNS
rebinding) and be of the same origin. Addresses in numbers cannot be pointed elsewhere, so they are fine as long as the
operator has named no address. Knows nothing of accounts.
"""

import ipaddress
import socket
from urllib.parse import urlsplit

from engine.settings import Settings

EVERY_IPV4 = "0.0.0.0"  # compared with, never bound to  # nosec B104
ANYWHERE = frozenset({EVERY_IPV4, "::", ""})


class Origins:
    def __init__(self, settings: Settings) -> None:
        public = urlsplit(settings.public_url)
        self._public_name = (public.hostname or "").rstrip(".")
        self._public = f"{public.scheme}://{public.netloc.rpartition('@')[2]}".lower() if public.netloc else ""
        self._names = {"localhost", self._public_name, *_listed(settings.allowed_hosts)}
        if not self._public:
            self._names |= {socket.gethostname().lower(), f"{socket.gethostname().lower()}.local"}
        if settings.host not in ANYWHERE:
            self._names.add(settings.host.lower())
        self._names.discard("")

    def may_address(self, host: str) -> bool:
        """Whether `host`, as the Host header says it, is a name of this server."""
        name = _name(host)
        if name in self._names:
            return True
        address = _number(name)
        return address is not None and (address.is_loopback or not self._public)

    def is_number(self, host: str) -> bool:
        """Whether `host` is an address in numbers, which nobody can point elsewhere."""
        return _number(_name(host)) is not None

    def may_call(self, origin: str | None, host: str) -> bool:
        """Whether a page of this origin may change something here, or open a socket. None: no page calls."""
        if origin is None or (self._public and origin.lower() == self._public):
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        own = parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower() and self.may_address(host)
        return own and _name(host) != self._public_name  # a public address has exactly one origin


def _listed(names: str) -> set[str]:
    return {name.strip().lower().rstrip(".") for name in names.split(",") if name.strip()}


def _number(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _name(host: str) -> str:
    """The name in a Host header, without the port; "" where it is none."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return ""
    plain = parts.netloc == host and parts.username is None and not any(mark in host for mark in "/\\?#@ \t")
    return (parts.hostname or "").rstrip(".") if plain else ""
