"""Where the site begins: "" where it has a name of its own, or a path such as /qdesk below another site's name.

QDESK_PUBLIC_URL says so (`Settings.base_path`). Within the program every path is as if there were none: ui/entry.py
takes it away from what is asked, notes it in scope["state"], and puts it before where answers lead to; NiceGUI puts it
before its own addresses. What we write into pages by hand begins with `base_of`, or window.path_prefix in scripts.
"""

from starlette.requests import HTTPConnection
from starlette.types import Scope


def base_of(asked: Scope | HTTPConnection) -> str:
    """What goes before every path that is told to the browser that asks."""
    scope = asked.scope if isinstance(asked, HTTPConnection) else asked
    return str(scope["state"]["base"])
