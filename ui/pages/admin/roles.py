"""What the roles are called, in the reader's language."""

from typing import TYPE_CHECKING

from ui.i18n import Language

if TYPE_CHECKING:
    from storage.records import UserRole

ROLES: "tuple[UserRole, ...]" = ("staff", "reviewer", "admin")


def roles(say: Language) -> dict[str, str]:
    return {"staff": say("Staff"), "reviewer": say("Reviewer"), "admin": say("Administrator")}


def chosen(value: object) -> "UserRole":
    """The role of this name; the one that may least for anything else."""
    return next((role for role in ROLES if role == value), ROLES[0])
