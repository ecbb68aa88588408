"""Who has shown that they are somebody, and still owes a code: for five minutes, by a token that one browser has.

Kept in memory: whoever is between the two when the server goes down signs in anew. Knows nothing of codes.
"""

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass

LASTS_S = 300.0
MOST = 10_000  # at once; the oldest gives way


@dataclass(frozen=True, slots=True)
class Pending:
    user_id: str
    nonce: str  # of the second step that has to be set up first; "" = there is one
    until: float  # by time.monotonic()
    id_token: str  # of the OpenID provider, for the session; "" = none


class PendingSteps:
    def __init__(self) -> None:
        self._pending: OrderedDict[str, Pending] = OrderedDict()

    def begin(self, user_id: str, nonce: str, id_token: str) -> str:
        """Return the token."""
        token = secrets.token_urlsafe(32)
        self._pending[token] = Pending(user_id, nonce, time.monotonic() + LASTS_S, id_token)
        if len(self._pending) > MOST:
            self._pending.popitem(last=False)
        return token

    def of(self, token: str) -> Pending | None:
        """None: there is no such token, or it is too old."""
        pending = self._pending.get(token)
        return pending if pending and time.monotonic() < pending.until else None

    def end(self, token: str) -> None:
        self._pending.pop(token, None)

    def forget(self, user_id: str) -> None:
        """All of this person's are over."""
        for token in [token for token, pending in self._pending.items() if pending.user_id == user_id]:
            self.end(token)
