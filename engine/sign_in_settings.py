"""The settings of how people sign in, and what all settings have in common. Read through engine/settings.py."""

from typing import Annotated

from pydantic import Field
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


class SignInSettings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    require_totp: Roles = Field(
        "", description="Roles that need a second step at sign-in; everybody else may turn it on for themselves."
    )

    @property
    def roles_with_second_step(self) -> list[str]:
        return listed(self.require_totp)


def listed(text: str) -> list[str]:
    """What stands between commas."""
    return [part.strip() for part in text.split(",") if part.strip()]
