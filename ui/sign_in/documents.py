"""What an OpenID provider publishes about itself: its addresses (discovery) and its keys. Kept for a while.

Knows nothing of people. Whatever is not as it must be is a ProviderAway, whose text is for the log.
"""

import time
from typing import Any
from urllib.parse import urlsplit

import httpx2
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from ui.sign_in.trips import ProviderAway

KEPT_S = 3600.0
NOT_ANEW_WITHIN_S = 30.0  # forged tokens must not make us ask for keys again and again
NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
OFFERED = ("userinfo_endpoint", "end_session_endpoint")
KINDS = ("RSA", "EC", "OKP")  # none of which the client's secret could be


class Documents:
    def __init__(self, issuer: str, timeout_s: float) -> None:
        self._issuer, self._timeout_s = issuer, timeout_s
        self._about: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, KeySet] | None = None

    async def about(self) -> dict[str, Any]:
        """The provider's own description. It must be of the very issuer that the settings name."""
        if self._about is None or time.monotonic() - self._about[0] > KEPT_S:
            found = await self._read(self._issuer.rstrip("/") + "/.well-known/openid-configuration")
            if found.get("issuer") != self._issuer:
                raise ProviderAway(f"{self._issuer} calls itself {found.get('issuer')!r}")
            if wrong := [name for name in NEEDED if not self._trusted(found.get(name))]:
                raise ProviderAway(f"{self._issuer} names no good {', '.join(wrong)}")
            for name in OFFERED:
                if not self._trusted(found.get(name)):
                    found.pop(name, None)
            self._about = time.monotonic(), found
        return self._about[1]

    async def keys(self, *, anew: bool = False) -> KeySet:
        """What the provider signs with. `anew`: a token was signed by none of those that we know."""
        kept_s = NOT_ANEW_WITHIN_S if anew else KEPT_S
        if self._keys is None or time.monotonic() - self._keys[0] > kept_s:
            found = await self._read((await self.about())["jwks_uri"])
            self._keys = time.monotonic(), self._key_set(found)
        return self._keys[1]

    def _key_set(self, found: dict[str, Any]) -> KeySet:
        listed = found.get("keys")
        usable = [key for key in listed if _signs(key)] if isinstance(listed, list) else []
        try:
            return KeySet.import_key_set({"keys": usable})
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise ProviderAway(f"the keys of {self._issuer} cannot be used: {error!r}") from None

    def _trusted(self, address: object) -> bool:
        """As safe as the issuer's own: nothing goes over plain http unless the issuer itself does."""
        scheme = urlsplit(address).scheme if isinstance(address, str) else ""
        return scheme == "https" or (scheme == "http" and self._issuer.startswith("http://"))

    async def _read(self, address: str) -> dict[str, Any]:
        try:
            async with httpx2.AsyncClient(timeout=self._timeout_s) as client:
                answer = await client.get(address)
                found = answer.json() if answer.status_code == 200 else None
        except (httpx2.HTTPError, ValueError) as error:
            raise ProviderAway(f"{address} cannot be read: {error!r}") from None
        if not isinstance(found, dict):
            raise ProviderAway(f"{address} answers with {answer.status_code} and no object")
        return found


def _signs(key: object) -> bool:
    return isinstance(key, dict) and key.get("kty") in KINDS and key.get("use", "sig") == "sig"
