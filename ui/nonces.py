"""A nonce for each answer, and NiceGUI's page with it in every script of its own: the browser runs no other.

It is put into the template before anything is filled in, so what gets into a page by a fault has none. Scripts that we
add ourselves carry it too (ui/theme.py). The policy that names it is in ui/headers.py.
"""

import secrets
from collections.abc import Callable

from jinja2 import BaseLoader, Environment
from nicegui.client import templates
from starlette.requests import HTTPConnection


def new_nonce() -> str:
    return secrets.token_urlsafe(16)


def nonce_of(asked: HTTPConnection) -> str:
    """The nonce of the answer to this; ui/entry.py has made it."""
    return str(asked.state.nonce)


def put_nonces_into_pages() -> None:
    """Before the first page is built."""
    loader = templates.env.loader
    assert loader is not None
    templates.env.loader = _WithNonces(loader)


class _WithNonces(BaseLoader):
    def __init__(self, loader: BaseLoader) -> None:
        self._loader = loader

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        source, file, is_fresh = self._loader.get_source(environment, template)
        return source.replace("<script", '<script nonce="{{ request.state.nonce }}"'), file, is_fresh
