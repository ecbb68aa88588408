"""Every setting, with its default, unit and meaning. Read once at the start from QDESK_* environment variables.

`docs/settings.md` is generated from this file (`python -m engine.settings`), and a test holds the two together.
"""

import sys
from pathlib import Path
from typing import Literal

from platformdirs import user_cache_path
from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

PREFIX = "QDESK_"


class Settings(BaseSettings):
    """What the operator can choose. Raises pydantic.ValidationError; `load()` turns that into a sentence."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 for every interface.")
    port: int = Field(8080, ge=1, le=65535, description="Port to listen on.")
    public_url: str = Field(
        "",
        pattern=r"^(https?://\S+)?$",
        description="Address that people use, when a proxy stands in front; https makes cookies Secure.",
    )
    data_dir: Path = Field(Path("data"), description="Folder of the database and of the session secret.")
    database_url: str = Field("", description="SQLAlchemy URL; empty is SQLite in the data folder.")
    session_secret: SecretStr = Field(
        SecretStr(""), description="Key under which session tokens are stored; empty makes one in the data folder."
    )
    admin_password: SecretStr = Field(
        SecretStr(""), description="Makes the account `admin` on the first start; empty prints a set-up link instead."
    )
    api_key: SecretStr = Field(SecretStr(""), description="A fixed key for programs; empty is none.")
    retention_days: int = Field(0, ge=0, description="Days after which a logged exchange is deleted; 0 keeps all.")
    on_log_failure: Literal["refuse", "warn"] = Field(
        "refuse", description="What to do with new requests while the log cannot be written."
    )

    backend: Literal["qwen2", "remote", "scripted"] = Field(
        "qwen2", description="Where answers come from: the engine in this process, another server, or a script."
    )
    model: str = Field(
        "auto", min_length=1, description="`auto`, `packaged`, a folder, or a hub name such as Qwen/Qwen2-7B-Instruct."
    )
    models_dir: Path = Field(
        user_cache_path("qdesk", appauthor=False),
        description="Folder of downloads and 4-bit weights, shared by all data folders.",
    )
    device: str = Field("auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$", description="`auto`, `cpu`, `cuda` or `cuda:N`.")
    quantize: Literal["nf4", "none"] = Field("nf4", description="4-bit NormalFloat weights, or bfloat16 as they are.")
    threads: int = Field(0, ge=0, le=256, description="CPU threads of the engine; 0 is one a physical core.")
    kv_cache_mb: int = Field(
        0,
        ge=0,
        description="Memory for keys and values of conversations, in MiB; 0 is max_concurrent_requests and six more of "
        "max_context_tokens each, but at most half of the free memory.",
    )
    system_prompt: str = Field(
        "You are a helpful assistant.", description="System prompt of conversations that set none; may be empty."
    )
    openai_base_url: str = Field(
        "", pattern=r"^(https?://\S+)?$", description="Backend `remote`: base URL, up to and with /v1."
    )
    openai_api_key: SecretStr = Field(SecretStr(""), description="Backend `remote`: the key it asks for.")

    max_concurrent_requests: int = Field(10, ge=1, le=256, description="Requests that run at once.")
    max_waiting_requests: int = Field(50, ge=0, le=100_000, description="Requests that may wait; more are refused.")
    max_requests_per_user: int = Field(3, ge=1, le=1000, description="Running and waiting requests of one person.")
    max_context_tokens: int = Field(
        4096, ge=64, le=1_000_000, description="Tokens of a prompt and its answer together."
    )
    max_new_tokens: int = Field(1024, ge=1, le=1_000_000, description="Tokens of one answer.")
    request_timeout_s: float = Field(600, gt=0, description="Seconds from asking to the last token, waiting included.")
    abandon_after_s: float = Field(60, ge=0, description="Seconds that an answer goes on when no page shows it.")
    drain_s: float = Field(30, ge=0, description="Seconds that running answers get to finish when the server stops.")

    @model_validator(mode="after")
    def _fits_together(self) -> "Settings":
        if self.backend == "remote" and not self.openai_base_url:
            raise ValueError(f"{PREFIX}BACKEND is remote, so {PREFIX}OPENAI_BASE_URL must be set")
        return self

    @property
    def sqlalchemy_url(self) -> str:
        return self.database_url or f"sqlite:///{(self.data_dir / 'qdesk.db').absolute()}"


def load() -> Settings:
    """Read the environment. A bad value ends the process with one sentence that names setting, value and range."""
    try:
        return Settings()
    except ValidationError as invalid:
        sys.exit("\n".join(_sentence(error) for error in invalid.errors()))


def _sentence(error: object) -> str:
    assert isinstance(error, dict)
    message = str(error["msg"]).removeprefix("Value error, ")
    if not error["loc"]:
        return f"{message}."
    name = str(error["loc"][0])
    value = "" if "secret" in name or "password" in name or "key" in name else f" is {error['input']!r}, but"
    meaning = Settings.model_fields[name].description if name in Settings.model_fields else "There is no such setting."
    return f"{PREFIX}{name.upper()}{value} {message[0].lower()}{message[1:]}. {meaning}"


def document() -> str:
    """Return the page docs/settings.md."""
    rows = []
    for name, field in Settings.model_fields.items():
        default = field.default
        if isinstance(default, SecretStr):
            default = default.get_secret_value()
        shown = "the user's cache folder" if name == "models_dir" else f"`{default}`" if str(default) else "empty"
        rows.append(f"| `{PREFIX}{name.upper()}` | {shown} | {field.description} |")
    head = [
        "# Settings",
        "",
        "Environment variables, read once at the start. Written by `python -m engine.settings`; change it there.",
        "",
        "| setting | default | meaning |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    Path("docs/settings.md").write_text(document(), encoding="utf-8")
