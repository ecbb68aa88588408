"""Who is there: somebody who looks at a page, or somebody whose program calls. Known everywhere through ui/auth.py."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ui.access import HOLDERS, Right

if TYPE_CHECKING:
    from storage.records import User


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who looks at a page."""

    user: "User"
    session_id: str


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls the API: an account by its key or its session, or (None) the operator by the fixed key."""

    user: "User | None"
    key_id: str = ""  # of the account's key that opened the door
    session_id: str = ""  # or of the session

    @property
    def person(self) -> str | None:
        return self.user.id if self.user else None

    def may(self, right: Right) -> bool:
        """Whether the account's role has this right; the operator has all of them."""
        return self.user is None or self.user.role in HOLDERS[right]

    @property
    def name(self) -> str:
        return self.user.name if self.user else ""
