"""OpenID Connect: who somebody is by the word of one provider (authorization code with PKCE, state and nonce).

    address = await provider.begin(trip)                 where the browser goes
    trip, known = await provider.finish(query, browser, session_id)      when it comes back
    address = await provider.way_out(id_token, back)     where the browser goes to end the provider's session too

Nothing that comes by the browser is believed: the provider is asked for the person's token
directly, and that must be signed with a key of its own, for this server, for this trip, and not be too old.
"""

from collections.abc import Mapping
from typing import Any

import httpx2
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from loguru import logger

from engine.settings import Settings
from engine.sign_in_settings import listed
from ui.sign_in.documents import Documents
from ui.sign_in.outside import Known
from ui.sign_in.trips import Declined, NotVouchedFor, ProviderAway, Trip, Trips, WrongDomain

LEEWAY_S = 60  # clocks differ
TIMEOUT_S = 5.0
LONGEST_HINT = 6000  # characters of an address that servers surely take
SIGNED_BY = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
FAULTS = (JoseError, OAuthError, httpx2.HTTPError, ValueError, KeyError, TypeError)


class Provider:
    def __init__(self, settings: Settings) -> None:
        """Raises ValueError with a sentence where the client's secret cannot be read."""
        self.issuer, self.label = settings.oidc_issuer, settings.oidc_label
        self._settings, self._secret = settings, settings.oidc_secret
        self._documents = Documents(self.issuer, TIMEOUT_S)
        self._trips = Trips()

    async def begin(self, trip: Trip) -> str:
        """The provider's address to send the browser to. Raises ProviderAway."""
        about = await self._documents.about()
        async with self._client(about, trip.redirect_uri) as client:
            address, _ = client.create_authorization_url(
                about["authorization_endpoint"],
                state=self._trips.begin(trip),
                code_verifier=trip.verifier,
                nonce=trip.nonce,
            )
        return str(address)

    async def finish(self, query: Mapping[str, str], browser: str, session_id: str) -> tuple[Trip, Known]:
        """Who has come back. Raises NotVouchedFor, Declined, WrongDomain or ProviderAway."""
        trip = self._trips.take(query.get("state", ""), browser, session_id)
        about = await self._documents.about()
        said_by = query.get("iss")
        if said_by != self.issuer and (said_by or about.get("authorization_response_iss_parameter_supported")):
            raise NotVouchedFor(f"the answer is by {said_by!r}")  # of another provider, who wants its code used here
        if "code" not in query:
            logger.info("{} let nobody in: {!r}", self.issuer, query.get("error", "")[:100])
            raise Declined
        claims, id_token = await self._claims(about, trip, query["code"])
        self._check_domain(claims)
        kept = id_token if self._settings.oidc_logout else ""
        return trip, Known(self.issuer, str(claims["sub"]), self._name(claims), self._groups(claims), kept)

    async def way_out(self, id_token: str, back: str) -> str:
        """The address that ends the provider's session as well and then leads `back`; "" where there is none now."""
        try:
            about = await self._documents.about()
            address = httpx2.URL(about["end_session_endpoint"])
        except (ProviderAway, KeyError, httpx2.InvalidURL) as trouble:
            logger.warning("nobody is signed out at {}: {!r}", self.issuer, trouble)
            return ""
        asked = {"client_id": self._settings.oidc_client_id, "post_logout_redirect_uri": back}
        hint = {"id_token_hint": id_token} if len(id_token) <= LONGEST_HINT else {}
        return str(address.copy_merge_params(asked | hint))

    async def _claims(self, about: dict[str, Any], trip: Trip, code: str) -> tuple[dict[str, Any], str]:
        """What the provider says of the person, for the code that the browser brought, and the token that says it."""
        try:
            async with self._client(about, trip.redirect_uri) as client:
                token = await client.fetch_token(
                    about["token_endpoint"], grant_type="authorization_code", code=code, code_verifier=trip.verifier
                )
                id_token = str(token["id_token"])
                claims = await self._verified(id_token, trip.nonce, str(token.get("access_token", "")))
                return await self._completed(client, about, claims), id_token
        except httpx2.TransportError as error:
            raise ProviderAway(f"{self.issuer} gave no token: {error!r}") from None
        except FAULTS as error:
            raise NotVouchedFor(f"no token, or not a good one: {error!r}") from None

    async def _verified(self, id_token: str, nonce: str, access_token: str) -> dict[str, Any]:
        """The claims of a token that is signed by the provider, for us, for this trip, and still holds."""
        try:
            token = jwt.decode(id_token, await self._documents.keys(), SIGNED_BY)
        except JoseError:  # perhaps by a key that is newer than what we know
            token = jwt.decode(id_token, await self._documents.keys(anew=True), SIGNED_BY)
        client_id = self._settings.oidc_client_id
        must = {"iss": {"essential": True, "value": self.issuer}, "aud": {"essential": True, "value": client_id}}
        about_it = {"nonce": nonce, "client_id": client_id, "access_token": access_token}
        CodeIDToken(token.claims, token.header, must, about_it).validate(leeway=LEEWAY_S)
        if not isinstance(token.claims["sub"], str) or not token.claims["sub"]:
            raise ValueError("the subject is no text")
        return dict(token.claims)

    async def _completed(
        self, client: AsyncOAuth2Client, about: dict[str, Any], claims: dict[str, Any]
    ) -> dict[str, Any]:
        """The claims, with those from the provider's userinfo that are needed and not in the token."""
        needed = {self._settings.oidc_name_claim, self._settings.oidc_role_claim}
        needed |= {"email"} if self._settings.oidc_email_domains else set()
        missing = any(_found(claims, path) is None for path in needed if path)
        if not missing or "userinfo_endpoint" not in about:
            return claims
        answer = await client.get(about["userinfo_endpoint"])
        more = answer.json() if answer.status_code == 200 else {}
        return {**more, **claims} if isinstance(more, dict) and more.get("sub") == claims["sub"] else claims

    def _check_domain(self, claims: dict[str, Any]) -> None:
        domains = {domain.lower() for domain in listed(self._settings.oidc_email_domains)}
        if domains:
            name, _, domain = str(claims.get("email", "")).partition("@")
            if claims.get("email_verified") is not True or not name or domain.lower() not in domains:
                raise WrongDomain

    def _name(self, claims: dict[str, Any]) -> str:
        name = _found(claims, self._settings.oidc_name_claim)
        return name if isinstance(name, str) else ""

    def _groups(self, claims: dict[str, Any]) -> frozenset[str]:
        groups = _found(claims, self._settings.oidc_role_claim)
        several = groups if isinstance(groups, list) else [groups]
        return frozenset(group for group in several if isinstance(group, str))

    def _client(self, about: dict[str, Any], redirect_uri: str) -> AsyncOAuth2Client:
        methods = about.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        how = "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"
        return AsyncOAuth2Client(
            self._settings.oidc_client_id,
            self._secret or None,
            token_endpoint_auth_method=how if self._secret else "none",
            scope=" ".join(dict.fromkeys(["openid", *self._settings.oidc_scopes.split()])),
            redirect_uri=redirect_uri,
            code_challenge_method="S256",
            timeout=TIMEOUT_S,
        )


def _found(claims: dict[str, Any], path: str) -> Any:
    """The claim of this name; or, where there is none, what dots lead to: realm_access.roles."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value
