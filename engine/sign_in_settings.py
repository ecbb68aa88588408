"""The settings of how people sign in, and what all settings have in common. Read through engine/settings.py."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "QDESK_"

Seconds = Annotated[float, Field(allow_inf_nan=False)]
Url = Annotated[
    str,
    Field(
        pattern=r"^(https?://[^\s/]+\S*)?$",
        json_schema_extra={"allowed": "empty, or an address that begins with http:// or https://"},
    ),
]
Urls = Annotated[
    str,
    Field(
        pattern=r"^(https?://[^\s/,]+[^\s,]*(\s*,\s*https?://[^\s/,]+[^\s,]*)*)?$",
        json_schema_extra={"allowed": "empty, or addresses that begin with http:// or https://, with commas between"},
    ),
]
ROLE = "(staff|reviewer|admin)"
Roles = Annotated[
    str,
    Field(
        pattern=rf"^({ROLE}(\s*,\s*{ROLE})*)?$",
        json_schema_extra={"allowed": "empty, or staff, reviewer and admin with commas between"},
    ),
]
RoleMap = Annotated[
    str,
    Field(
        pattern=rf"^(\s*{ROLE}\s*:[^;]*[^;\s][^;]*(;\s*{ROLE}\s*:[^;]*[^;\s][^;]*)*;?\s*)?$",
        json_schema_extra={"allowed": "empty, or a role, a colon and a value, with semicolons between several"},
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
    oidc_scopes: str = Field("openid profile email", description="OpenID Connect: what is asked for.", pattern="openid")
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
    oidc_email_domains: str = Field(
        "", description="OpenID Connect: domains, separated by commas; verified e-mail addresses of others stay out."
    )

    @model_validator(mode="after")
    def _signs_somebody_in(self) -> "SignInSettings":
        if self.oidc_issuer and not self.oidc_client_id:
            raise ValueError(f"{PREFIX}OIDC_ISSUER is set, so {PREFIX}OIDC_CLIENT_ID must be set")
        if self.oidc_issuer.startswith("http://") and urlsplit(self.oidc_issuer).hostname not in LOOPBACK:
            raise ValueError(f"{PREFIX}OIDC_ISSUER must begin with https://, since it vouches for people")
        if bool(self.oidc_roles) != bool(self.oidc_role_claim):
            raise ValueError(f"{PREFIX}OIDC_ROLES and {PREFIX}OIDC_ROLE_CLAIM go together")
        if not self.password_sign_in and not self.oidc_issuer:
            raise ValueError(f"{PREFIX}PASSWORD_SIGN_IN is false, so there must be another way: {PREFIX}OIDC_ISSUER")
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
