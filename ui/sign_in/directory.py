"""An LDAP directory: whether it knows somebody by this name and password, and what it says of them.

Whoever is unknown costs it the same questions as somebody with a wrong password. What people type is escaped wherever
it goes, an empty password is never sent (a directory would take it for nobody, and say yes), and referrals are not
followed. Runs on threads of its own, with time limits; knows nothing of accounts.
"""

import asyncio
import secrets
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

from ldap3 import BASE, NONE, SUBTREE, Connection, Server, Tls
from ldap3.core.exceptions import LDAPException, LDAPInvalidDnError
from ldap3.utils.conv import escape_filter_chars
from ldap3.utils.dn import escape_rdn

from engine.settings import Settings
from ui.accounts import MAX_NAME
from ui.sign_in.failing import DirectoryAway
from ui.sign_in.outside import LDAP, Known, normal_dn
from ui.tries import TooManyTries

TIMEOUT_S = 5  # of each question; whole seconds
MAX_WAITING = 40
MOST_GROUPS = 1000
TROUBLE = {8, 13, 51, 52, 80}  # results of a bind that are not about the password: RFC 4511, appendix A
NO_GROUPS = "1.1"  # asks for no attributes

Entry = dict[str, Any]


class CheckedTls(Tls):  # type: ignore[misc]  # ldap3 has no types
    """Encrypted only to whom the certificate is for: ldap3's own check is left to the caller, and has no SNI."""

    def wrap_socket(self, connection: Connection, do_handshake: bool = False) -> None:
        context = ssl.create_default_context(cafile=self.ca_certs_file)
        connection.socket = context.wrap_socket(connection.socket, server_hostname=connection.server.host)


class Directory:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        tls = CheckedTls(ca_certs_file=settings.ldap_ca_file or None)
        self._server = Server(settings.ldap_url, get_info=NONE, tls=tls, connect_timeout=TIMEOUT_S)
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="ldap")
        self._waiting = 0

    async def look_up(self, name: str, password: str) -> Known | None:
        """Who that is; None where name and password do not belong together. Raises DirectoryAway or TooManyTries."""
        if self._waiting >= MAX_WAITING:
            raise TooManyTries
        usable = 0 < len(name) <= MAX_NAME and name.isprintable() and password and "\0" not in password
        asked = (name, password) if usable else (secrets.token_hex(8), secrets.token_hex(8))
        self._waiting += 1
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._threads, self._look_up, *asked)
        finally:
            self._waiting -= 1
        return found if usable else None

    async def pretend(self) -> None:
        """Take as long as for somebody with a wrong password. Raises what `look_up` raises."""
        await self.look_up("", "")

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _look_up(self, name: str, password: str) -> Known | None:
        try:
            if self._settings.ldap_dn_template:
                return self._by_own_dn(name, password)
            return self._by_looking(name, password)
        except LDAPInvalidDnError:
            return None
        except (LDAPException, OSError) as error:
            raise DirectoryAway(f"{self._settings.ldap_url}: {error!r}") from None

    def _by_own_dn(self, name: str, password: str) -> Known | None:
        """Bind as the person, and read the person's own entry."""
        dn = self._settings.ldap_dn_template.replace("{name}", escape_rdn(name))
        with self._connected(dn, password) as own:
            if not _fits(own):
                return None
            return self._known(own, self._read(own, dn, "(objectClass=*)", BASE), name)

    def _by_looking(self, name: str, password: str) -> Known | None:
        """Find the person's entry with the account for that, then bind as the person."""
        service = self._settings.ldap_bind_password.get_secret_value()
        with self._connected(self._settings.ldap_bind_dn or None, service or None) as looking:
            if not looking.bind():
                raise DirectoryAway(f"the account that looks people up is refused: {looking.result['description']}")
            asked = self._settings.ldap_filter.replace("{name}", escape_filter_chars(name))
            entry = self._read(looking, self._settings.ldap_base, asked, SUBTREE)
            dn = entry["dn"] if entry else f"cn={secrets.token_hex(8)},{self._settings.ldap_base}"
            with self._connected(dn, password) as own:
                fits = _fits(own)
            return self._known(looking, entry, name) if fits else None

    def _known(self, connection: Connection, entry: Entry | None, name: str) -> Known | None:
        if entry is None:
            return None
        subject = _first(entry, self._settings.ldap_id_attribute)
        if not subject:
            raise DirectoryAway(f"{entry['dn']} shows no {self._settings.ldap_id_attribute}")
        binary = self._settings.ldap_id_attribute.lower() == "objectguid"
        called = _first(entry, self._settings.ldap_name_attribute).decode("utf-8", "replace") or name
        known_as = subject.hex() if binary else subject.decode("utf-8", "replace")
        return Known(LDAP, known_as, called, self._groups(connection, entry, called))

    def _groups(self, connection: Connection, entry: Entry, name: str) -> frozenset[str]:
        groups = [value.decode("utf-8", "replace") for value in _all(entry, "memberOf")]
        if base := self._settings.ldap_group_base:
            dn = escape_filter_chars(entry["dn"])
            member = f"(|(member={dn})(uniqueMember={dn})(memberUid={escape_filter_chars(name)}))"
            groups += [found["dn"] for found in _search(connection, base, member, SUBTREE, [NO_GROUPS], MOST_GROUPS)]
        return frozenset(normal_dn(group) for group in groups)

    def _read(self, connection: Connection, base: str, asked: str, scope: str) -> Entry | None:
        """The one entry that is meant; None where there is none, or are several."""
        wanted = [self._settings.ldap_id_attribute, self._settings.ldap_name_attribute, "memberOf"]
        found = _search(connection, base, asked, scope, wanted, 2)
        return found[0] if len(found) == 1 else None

    @contextmanager
    def _connected(self, dn: str | None, password: str | None) -> Iterator[Connection]:
        """An open connection, encrypted if it has to be, that has not said yet who it is."""
        connection = Connection(
            self._server, dn, password, auto_referrals=False, receive_timeout=TIMEOUT_S, raise_exceptions=False
        )
        try:
            connection.open()
            if self._settings.ldap_start_tls and not connection.start_tls():
                raise DirectoryAway(f"{self._settings.ldap_url} does not encrypt")
            yield connection
        finally:
            with suppress(LDAPException):  # there is nobody left to say goodbye to
                connection.unbind()
            if connection.socket:  # what was never whole is not closed by that
                connection.socket.close()


def _fits(connection: Connection) -> bool:
    if connection.bind():
        return True
    if connection.result["result"] in TROUBLE:
        raise DirectoryAway(f"a bind is answered with {connection.result['description']}")
    return False


def _search(connection: Connection, base: str, asked: str, scope: str, attributes: list[str], most: int) -> list[Entry]:
    connection.search(base, asked, scope, attributes=attributes, size_limit=most, time_limit=TIMEOUT_S)
    if connection.result["result"] not in (0, 4):  # found, or more than asked for
        raise DirectoryAway(f"looking below {base} is answered with {connection.result['description']}")
    return [entry for entry in connection.response or [] if entry["type"] == "searchResEntry"]


def _all(entry: Entry, attribute: str) -> list[bytes]:
    found = {name.lower(): values for name, values in entry["raw_attributes"].items()}
    return [bytes(value) for value in found.get(attribute.lower(), [])]


def _first(entry: Entry, attribute: str) -> bytes:
    return next(iter(_all(entry, attribute)), b"")
