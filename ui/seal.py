"""The server's secret, and what is sealed with it: session tokens, API keys, and the tokens of forms.

What is stored or shown is an HMAC, so that a copy of the database opens nothing. Knows nothing of HTTP.
"""

import hmac
import os
import secrets
import sys
from base64 import b32encode
from hashlib import sha256
from pathlib import Path

from engine.settings import Settings

SECRET_FILE = "session.secret"  # a file's name  # nosec B105
SECRET_BYTES = 32


class Seal:
    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def __call__(self, purpose: str, text: str) -> str:
        """HMAC-SHA-256 of `text` as 64 hexadecimal digits; another purpose gives another seal."""
        return hmac.new(self._secret, f"{purpose}:{text}".encode(), sha256).hexdigest()

    def derive(self, purpose: str, text: str, size: int) -> str:
        """A secret of `size` bytes (32 at most) that only this server can make again, in base32."""
        whole = hmac.new(self._secret, f"{purpose}:{text}".encode(), sha256).digest()
        return b32encode(whole[:size]).decode().rstrip("=")

    def fits(self, purpose: str, text: str, seal: str) -> bool:
        return same(self(purpose, text), seal)


def same(left: str, right: str) -> bool:
    """Compare two secrets in a time that does not tell where they differ."""
    return hmac.compare_digest(left.encode(), right.encode())


def open_seal(settings: Settings) -> Seal:
    """The seal of this server, by QDESK_SESSION_SECRET or by a secret that is made once in the data folder.

    A secret that cannot be used ends the process with one sentence.
    """
    given = settings.session_secret.get_secret_value()
    return Seal(given.encode() if given else _kept_secret(settings.data_dir / SECRET_FILE))


def _kept_secret(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if not path.exists():
            keep_first(path, secrets.token_bytes(SECRET_BYTES))
        secret = path.read_bytes()
    except OSError as error:
        sys.exit(f"The session secret {path} cannot be used: {error.strerror}.")
    if len(secret) < SECRET_BYTES:  # not by us: it is there whole or not at all
        sys.exit(f"The session secret {path} is cut off. Delete it: everybody must sign in anew then.")
    return secret


def keep_first(path: Path, secret: bytes) -> None:
    """Write the file so that it is there whole or not at all, whenever the power fails or the disk is full.

    Of several processes that start on one folder at once, one is the first, and all have its secret.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.unlink(missing_ok=True)
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        os.replace(fresh, path)
    fresh.unlink(missing_ok=True)
