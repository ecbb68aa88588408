"""The files in ui/static, and the addresses that pages know them by."""

from functools import cache
from hashlib import sha256
from pathlib import Path

STATIC = Path(__file__).parent / "static"


def stylesheet(name: str, base: str) -> str:
    """The <link> of a style sheet in ui/static; for `base` see ui/base_path.py."""
    return f'<link rel="stylesheet" href="{base}{address(name)}">'


@cache
def address(name: str) -> str:
    """The address of a file in ui/static; it changes with the content, so browsers may keep the file."""
    return f"/static/{name}?v={sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"
