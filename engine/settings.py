"""Every setting, with its default, range and meaning. Read once at the start from QDESK_* environment variables.

`docs/settings.md` is generated from this file (`python -m engine.settings`), and a test holds the two together.
"""

import difflib
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

from loguru import logger
from platformdirs import user_cache_path
from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo

from engine.sign_in_settings import PREFIX, Seconds, SignInSettings, Url, Urls, matching

PublicUrl = Annotated[
    str,
    matching(
        r"^(https?://[^\s/?#]+(/[A-Za-z0-9._~-]+)*/?)?$",
        "empty, or an address such as https://chat.example.org or https://example.org/chat",
    ),
]


class Settings(SignInSettings):
    """What the operator can choose. Raises pydantic.ValidationError; `load()` turns that into a sentence."""

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on; 0.0.0.0 for every interface.")
    port: int = Field(8080, ge=1, le=65535, description="Port to listen on.")
    public_url: PublicUrl = Field(
        "",
        description="Address that people use, when a proxy stands in front, with the path if Qdesk stands below one; "
        "https makes cookies Secure.",
    )
    allowed_hosts: str = Field(
        "",
        description="Further names by which the server may be addressed, such as a container's; separated by commas.",
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
    heartbeat_s: Seconds = Field(
        5,
        ge=0.1,
        le=60,
        description="Several processes on one PostgreSQL: seconds between signs of life; one that gives none for three "
        "of them is taken for dead.",
    )
    retention_days: int = Field(
        0, ge=0, le=36_500, description="Days after which a logged exchange is deleted; 0 keeps all."
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="Lines of the server's own log on stderr: for people, or one JSON object a line."
    )
    otlp_endpoint: Url = Field(
        "", description="An OpenTelemetry collector's address for OTLP over HTTP, to which traces go; empty sends none."
    )
    on_log_failure: Literal["refuse", "warn"] = Field(
        "refuse", description="What to do with new requests while the log cannot be written."
    )

    self_erase: Literal["request", "now"] = Field(
        "request", description="A person who erases what they wrote asks an administrator, or erases it for good."
    )
    show_reviews: bool = Field(True, description="Whether people see on their account page who read their exchanges.")

    backend: Literal["qwen2", "remote", "scripted"] = Field(
        "qwen2", description="Where answers come from: the engine in this process, another server, or a script."
    )
    model: str = Field(
        "auto", min_length=1, description="`auto`, `packaged`, a folder, or a hub name such as Qwen/Qwen2-7B-Instruct."
    )
    models: str = Field(
        "",
        json_schema_extra={"allowed": "empty, or folders and names as in `QDESK_MODEL`, with commas between them"},
        description="Models that an administrator may load in its place while the server runs.",
    )
    models_dir: Path = Field(
        user_cache_path("qdesk", appauthor=False),
        description="Folder of downloads and 4-bit weights, shared by all data folders.",
    )
    device: str = Field(
        "auto",
        pattern=r"^(auto|cpu|cuda(:\d+)?)$",
        json_schema_extra={"allowed": "auto, cpu, cuda or cuda:N"},
        description="What the engine computes on; `auto` takes CUDA where there is any.",
    )
    quantize: Literal["nf4", "none"] = Field(
        "nf4", description="4-bit NormalFloat weights, or the model's as they are."
    )
    threads: int = Field(0, ge=0, le=256, description="CPU threads of the engine; 0 is one a physical core.")
    kv_cache_mb: int = Field(
        0,
        ge=0,
        description="Memory for keys and values of conversations, in MiB; 0 is max_concurrent_requests and six more of "
        "max_context_tokens each, but at most half of the free memory, and on a GPU all but a reserve.",
    )
    lookup_tokens: int = Field(
        7,
        ge=0,
        le=64,
        description="Tokens of an answer that the engine may guess at once from what was said before, while that is "
        "quicker; the answer stays the same. 0 guesses none.",
    )
    system_prompt: str = Field(
        "You are a helpful assistant.", description="System prompt of conversations that set none; may be empty."
    )
    openai_base_url: Urls = Field(
        "", description="Backend `remote`: base URL, up to and with /v1; several servers with commas between."
    )
    openai_api_key: SecretStr = Field(SecretStr(""), description="Backend `remote`: the key it asks for.")

    max_concurrent_requests: int = Field(10, ge=1, le=256, description="Requests that run at once.")
    max_waiting_requests: int = Field(50, ge=0, le=100_000, description="Requests that may wait; more are refused.")
    max_requests_per_user: int = Field(3, ge=1, le=1000, description="Running and waiting requests of one person.")
    api_rate_limit: str = Field(
        "600/minute",
        pattern=r"^([1-9]\d{0,5}/(\d{0,3} ?)(second|minute|hour|day)s?)?$",
        json_schema_extra={"allowed": "empty, or a number and a time such as 600/minute or 20/10 seconds"},
        description="Calls to the API that one account may make; empty is no limit.",
    )
    max_context_tokens: int = Field(
        4096, ge=64, le=1_000_000, description="Tokens of a prompt and its answer together."
    )
    max_new_tokens: int = Field(1024, ge=1, le=1_000_000, description="Tokens of one answer.")
    request_timeout_s: Seconds = Field(
        600, gt=0, description="Seconds from asking to the last token, waiting included."
    )
    abandon_after_s: Seconds = Field(
        60,
        ge=0,
        description="Seconds that an answer goes on when its person has no page open; on PostgreSQL 3 at least.",
    )
    drain_s: Seconds = Field(30, ge=0, description="Seconds that running answers get to finish when the server stops.")

    @model_validator(mode="after")
    def _fits_together(self) -> "Settings":
        if self.backend == "remote" and not self.openai_base_url:
            raise ValueError(f"{PREFIX}BACKEND is remote, so {PREFIX}OPENAI_BASE_URL must be set")
        return self

    @property
    def openai_base_urls(self) -> list[str]:
        return [url.strip() for url in self.openai_base_url.split(",")]

    @property
    def abandoned_after_s(self) -> float:
        """`abandon_after_s`, but long enough for other processes to tell, once a second, that somebody reads it."""
        return max(self.abandon_after_s, 3.0) if self.shares_database else self.abandon_after_s

    @property
    def shares_database(self) -> bool:
        """Whether other processes may work on the same database: each engine inside Qdesk needs one of its own."""
        return self.backend != "qwen2" and self.database_url.startswith("postgresql")

    @property
    def base_path(self) -> str:
        """The path below which people find everything, "/qdesk" for example; "" where that is the whole site."""
        return urlsplit(self.public_url).path.rstrip("/")

    @property
    def listed_models(self) -> tuple[str, ...]:
        """What may be loaded: `model` first, then `models`, each once."""
        listed = (self.model, *(name.strip() for name in self.models.split(",")))
        return tuple(dict.fromkeys(name for name in listed if name))

    @property
    def sqlalchemy_url(self) -> str:
        return self.database_url or f"sqlite:///{(self.data_dir / 'qdesk.db').absolute()}"


def load() -> Settings:
    """Read the environment. A bad value ends the process with one sentence that names setting, value and range.

    A variable that looks like a setting and is none is warned about, with the name that was probably meant.
    """
    try:
        settings = Settings()
    except ValidationError as invalid:
        sys.exit("\n".join(_sentence(error["loc"], error["msg"], error["input"]) for error in invalid.errors()))
    for warning in unknown(os.environ):
        logger.warning(warning)
    return settings


def unknown(variables: Iterable[str]) -> list[str]:
    """One sentence for each QDESK_ variable that no setting reads."""
    sentences = []
    for variable in sorted(variables):
        name = variable.upper().removeprefix(PREFIX).lower()
        if variable.upper().startswith(PREFIX) and name not in Settings.model_fields:
            near = difflib.get_close_matches(name, Settings.model_fields, n=1)
            meant = f"Did you mean {PREFIX}{near[0].upper()}?" if near else "See docs/settings.md."
            sentences.append(f"{variable} is not a setting and does nothing. {meant}")
    return sentences


def _sentence(loc: tuple[int | str, ...], message: str, value: object) -> str:
    if not loc:  # said by a validator of ours, about settings that do not fit together
        return message.removeprefix("Value error, ") + "."
    name = str(loc[0])
    field = Settings.model_fields[name]
    if field.annotation is SecretStr:
        shown = "cannot be read"
    elif value == "":
        shown = "is empty"
    else:
        shown = "is " + re.sub(r"[^/@\s']+@", "***@", repr(value))  # a URL's password is a secret too
    return f"{PREFIX}{name.upper()} {shown}; it must be {allowed(field)}. {field.description}"


def allowed(field: FieldInfo) -> str:
    """What a setting may be, as the end of a sentence that begins with "it must be"."""
    if isinstance(field.json_schema_extra, dict):
        return str(field.json_schema_extra["allowed"])
    if get_origin(field.annotation) is Literal:
        *others, last = get_args(field.annotation)
        return f"{', '.join(others)} or {last}"
    if field.annotation is bool:
        return "true or false"
    if field.annotation in (int, float):
        kind = "a whole number" if field.annotation is int else "a number"
        return f"{kind} {_range(field)}"
    if field.annotation is Path:
        return "a folder"
    return "text that is not empty" if _bound(field, "min_length") else "any text"


def _range(field: FieldInfo) -> str:
    least, most, above = _bound(field, "ge"), _bound(field, "le"), _bound(field, "gt")
    if above is not None:
        return f"above {above}"
    return f"from {least} to {most}" if most is not None else f"of {least} or more"


def _bound(field: FieldInfo, kind: str) -> Any:
    return next((getattr(bound, kind) for bound in field.metadata if hasattr(bound, kind)), None)


def document() -> str:
    """Return the page docs/settings.md."""
    rows = [
        f"| `{PREFIX}{name.upper()}` | {_default(name, field)} | {_cell(allowed(field))} | {field.description} |"
        for name, field in _in_order()
    ]
    head = [
        "# Settings",
        "",
        "Environment variables, read once at the start. A value that is not allowed stops the start with a sentence; a",
        "`QDESK_` variable that is not listed here is warned about. This page is written by `make docs` from",
        "[engine/settings.py](../engine/settings.py).",
        "",
        "| setting | default | allowed | meaning |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def _in_order() -> list[tuple[str, FieldInfo]]:
    """All settings, those of sign-in last."""
    return sorted(Settings.model_fields.items(), key=lambda setting: setting[0] in SignInSettings.model_fields)


def _default(name: str, field: FieldInfo) -> str:
    if name == "models_dir":
        return "the user's cache folder"
    default = field.default.get_secret_value() if isinstance(field.default, SecretStr) else field.default
    return f"`{default}`" if str(default) else "empty"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    Path("docs/settings.md").write_text(document(), encoding="utf-8")
