"""The settings of how people sign in, and what all settings have in common. Read through engine/settings.py."""

from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "QDESK_"


def matching(pattern: str, allowed: str) -> Any:
    """What goes with a text of this form; `allowed` says it in words."""
    return Field(pattern=pattern, json_schema_extra={"allowed": allowed})


Seconds = Annotated[float, Field(allow_inf_nan=False)]
Url = Annotated[str, matching(r"^(https?://[^\s/]+\S*)?$", "empty, or an address that begins with http:// or https://")]
Urls = Annotated[
    str,
    matching(
        r"^(https?://[^\s/,]+[^\s,]*(\s*,\s*https?://[^\s/,]+[^\s,]*)*)?$",
        "empty, or addresses that begin with http:// or https://, with commas between",
    ),
]
ROLE = "(staff|reviewer|admin)"
Roles = Annotated[
    str, matching(rf"^({ROLE}(\s*,\s*{ROLE})*)?$", "empty, or staff, reviewer and admin with commas between")
]
RoleMap = Annotated[
    str,
    matching(
        rf"^(\s*{ROLE}\s*:[^;]*[^;\s][^;]*(;\s*{ROLE}\s*:[^;]*[^;\s][^;]*)*;?\s*)?$",
        "empty, or a role, a colon and a value, with semicolons between several",
    ),
]
LdapUrl = Annotated[
    str,
    matching(
        r"^(ldaps?://[^\s/:]+(:\d+)?|ldaps?://\[[^\s\]]+\](:\d+)?)?/?$",
        "empty, or an address such as ldaps://directory.example.org",
    ),
]
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_FILE: dict[str, JsonValue] = {"allowed": "empty, or a file"}


class SignInSettings(BaseSettings):
    """Each way to sign in is off as long as its address is empty."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    require_totp: Roles = Field(
        "", description="Roles that need a second step at sign-in; everybody else may turn it on for themselves."
    )

    password_sign_in: bool = Field(
        True, description="Whether accounts of this server sign in with passwords of their own; `user link` opens one."
    )

    oidc_issuer: Url = Field(
        "", description="OpenID Connect: the provider's address, as it calls itself; empty is off."
    )
    oidc_client_id: str = Field("", description="OpenID Connect: what the provider calls this server.")
    oidc_client_secret: SecretStr = Field(SecretStr(""), description="OpenID Connect: the secret that goes with it.")
    oidc_client_secret_file: str = Field(
        "", description="OpenID Connect: a file that holds the secret, instead.", json_schema_extra=_FILE
    )
    oidc_name: str = Field(
        "", description="OpenID Connect: what the button says after `Sign in with`; empty: the host."
    )
    oidc_scopes: str = Field("openid profile email", description="OpenID Connect: what is asked for.")
    oidc_name_claim: str = Field(
        "preferred_username", description="OpenID Connect: the claim that becomes the name of a new account."
    )
    oidc_role_claim: str = Field(
        "", description="OpenID Connect: the claim with groups or roles, such as groups or realm_access.roles."
    )
    oidc_roles: RoleMap = Field(
        "",
        description="OpenID Connect: values of that claim by role, such as `admin: it-staff; reviewer: audit`. It is "
        "looked at anew at each sign-in. Who has none of them is staff, or stays out where staff has a value too.",
    )
    oidc_create: bool = Field(
        True, description="OpenID Connect: whether somebody without an account gets one at the first sign-in."
    )
    oidc_logout: bool = Field(
        False,
        description="OpenID Connect: whether Sign out ends the session at the provider too, where it offers that; "
        "register `/login` of this server there as an address to come back to.",
    )
    oidc_email_domains: str = Field(
        "", description="OpenID Connect: domains, separated by commas; verified e-mail addresses of others stay out."
    )

    ldap_url: LdapUrl = Field("", description="LDAP: the directory's address; empty is off.")
    ldap_start_tls: bool = Field(False, description="LDAP: encrypt an ldap:// connection before anything is sent.")
    ldap_ca_file: str = Field(
        "", description="LDAP: certificates that are trusted, if not the system's.", json_schema_extra=_FILE
    )
    ldap_bind_dn: str = Field("", description="LDAP: the account that looks people up; empty looks without one.")
    ldap_bind_password: SecretStr = Field(SecretStr(""), description="LDAP: its password.")
    ldap_base: str = Field("", description="LDAP: below which people are looked for.")
    ldap_filter: str = Field(
        "(uid={name})",
        pattern=r"\{name\}",
        json_schema_extra={"allowed": "a filter with {name} in it"},
        description="LDAP: what finds a person by the name that was typed.",
    )
    ldap_dn_template: str = Field(
        "",
        pattern=r"^$|\{name\}",
        json_schema_extra={"allowed": "empty, or a DN with {name} in it"},
        description="LDAP: people's own DN, such as `uid={name},ou=people,dc=example,dc=org`, instead of looking.",
    )
    ldap_name_attribute: str = Field(
        "uid", min_length=1, description="LDAP: what becomes the name of a new account; `sAMAccountName` in AD."
    )
    ldap_id_attribute: str = Field(
        "entryUUID", min_length=1, description="LDAP: what stays a person's for ever; `objectGUID` in AD."
    )
    ldap_group_base: str = Field(
        "", description="LDAP: below which groups are looked for; empty reads a person's memberOf alone."
    )
    ldap_roles: RoleMap = Field(
        "", description="LDAP: DNs of groups by role, such as `admin: cn=it,ou=groups,dc=example,dc=org`; as for OIDC."
    )
    ldap_create: bool = Field(
        True, description="LDAP: whether somebody without an account gets one at the first sign-in."
    )

    @model_validator(mode="after")
    def _signs_somebody_in(self) -> "SignInSettings":
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError(f"{PREFIX}OIDC_ISSUER is set, so {PREFIX}OIDC_CLIENT_ID must be set")
        if self.oidc_issuer.startswith("http://") and urlsplit(self.oidc_issuer).hostname not in LOOPBACK:
            raise ValueError(f"{PREFIX}OIDC_ISSUER must begin with https://, since it vouches for people")
        if bool(self.oidc_roles) != bool(self.oidc_role_claim):
            raise ValueError(f"{PREFIX}OIDC_ROLES and {PREFIX}OIDC_ROLE_CLAIM go together")
        if not self.password_sign_in and not self.oidc_issuer and not self.ldap_url:
            raise ValueError(
                f"{PREFIX}PASSWORD_SIGN_IN is false, so there must be {PREFIX}OIDC_ISSUER or {PREFIX}LDAP_URL"
            )
        return self

    @model_validator(mode="after")
    def _finds_people(self) -> "SignInSettings":
        if self.ldap_url and not (self.ldap_base or self.ldap_dn_template):
            raise ValueError(f"{PREFIX}LDAP_URL is set, so {PREFIX}LDAP_BASE or {PREFIX}LDAP_DN_TEMPLATE must be set")
        plain = self.ldap_url.startswith("ldap://") and not self.ldap_start_tls
        if plain and urlsplit(self.ldap_url).hostname not in LOOPBACK:
            raise ValueError(f"{PREFIX}LDAP_URL must begin with ldaps://, or {PREFIX}LDAP_START_TLS be true")
        if self.ldap_start_tls and self.ldap_url.startswith("ldaps://"):
            raise ValueError(f"{PREFIX}LDAP_START_TLS is for an ldap:// address")
        return self

    @property
    def oidc_secret(self) -> str:
        """Raises ValueError with a sentence where the file cannot be read."""
        if not self.oidc_client_secret_file:
            return self.oidc_client_secret.get_secret_value()
        try:
            return Path(self.oidc_client_secret_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"{PREFIX}OIDC_CLIENT_SECRET_FILE cannot be read: {error}.") from None

    @property
    def oidc_label(self) -> str:
        """What people know the provider as."""
        return self.oidc_name or urlsplit(self.oidc_issuer).hostname or ""

    @property
    def roles_with_second_step(self) -> list[str]:
        return listed(self.require_totp)


def role_map(text: str) -> dict[str, str]:
    """From "admin: a; reviewer: b" to {"a": "admin", "b": "reviewer"}."""
    pairs = (entry.partition(":") for entry in text.split(";") if entry.strip())
    return {value.strip(): role.strip() for role, _, value in pairs}


def listed(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
