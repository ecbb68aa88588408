"""The reviewer who looks at one of the review pages: may they still, and what they do is written down."""

from collections.abc import Mapping
from dataclasses import dataclass

from ui.access import ACTIONS, Right
from ui.auth import Visitor
from ui.desk import Desk
from ui.i18n import Language


@dataclass(frozen=True, slots=True)
class Reader:
    desk: Desk
    visitor: Visitor
    say: Language

    @property
    def id(self) -> str:
        return self.visitor.user.id

    def allowed(self) -> bool:
        return self.desk.auth.allowed(self.visitor, Right.REVIEW)

    def may(self, action: str) -> bool:
        """Whether they may do what not every reviewer may: one of ui/access.py's ACTIONS."""
        return self.desk.auth.allowed(self.visitor, ACTIONS[action])

    async def audit(self, action: str, *, target: str = "", detail: str = "") -> None:
        await self.desk.store.audit.add(self.visitor.user.name, action, target, detail)


def text_of(args: Mapping[str, object], name: str, longest: int = 64) -> str:
    """A text that the browser sent; "" for anything else."""
    value = args.get(name)
    return value[:longest] if isinstance(value, str) else ""
