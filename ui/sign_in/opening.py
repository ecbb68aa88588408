"""The provider and the directory that the settings name: imported only then, since most servers do without both."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from engine.settings import Settings
from engine.sign_in_settings import PREFIX

if TYPE_CHECKING:
    from ui.sign_in.directory import Directory
    from ui.sign_in.oidc import Provider

T = TypeVar("T")


def open_provider(settings: Settings) -> "Provider | None":
    """None: no OpenID provider is set. What is missing for one that is ends the process with a sentence."""

    def make() -> "Provider":
        from ui.sign_in.oidc import Provider

        return Provider(settings)

    return _made(make, "OIDC_ISSUER", "oidc") if settings.oidc_issuer else None


def open_directory(settings: Settings) -> "Directory | None":
    """The same for an LDAP directory."""

    def make() -> "Directory":
        from ui.sign_in.directory import Directory

        return Directory(settings)

    return _made(make, "LDAP_URL", "ldap") if settings.ldap_url else None


def _made(make: Callable[[], T], setting: str, extra: str) -> T:
    try:
        return make()
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        sys.exit(f'{PREFIX}{setting} is set, and {package} is not installed: pip install ".[{extra}]"')
    except ValueError as error:
        sys.exit(str(error))
