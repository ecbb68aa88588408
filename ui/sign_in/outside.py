"""Accounts of people for whom somebody else vouches: an OpenID provider, or a directory.

Who somebody is there is its issuer and subject, and nothing else: no account is ever found by a name or an e-mail
address, so nobody comes into another's account by being called the same. Roles follow what the issuer says, at each
sign-in. Knows no protocol.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from loguru import logger

from engine.sign_in_settings import role_map
from ui.accounts import name_trouble
from ui.i18n import language
from ui.sign_in.failing import SignInFailed

if TYPE_CHECKING:
    from storage.records import User, UserRole
    from ui.auth import Auth

LDAP = "ldap"  # the issuer of everybody in the directory, whatever its address
ROLES: "tuple[UserRole, ...]" = ("admin", "reviewer", "staff")  # the one that may most first


@dataclass(frozen=True, slots=True)
class Known:
    """Who somebody is elsewhere, and what they are called and belong to there."""

    issuer: str
    subject: str
    name: str
    groups: frozenset[str] = frozenset()
    id_token: str = ""  # an OpenID provider's, where its session is to end with ours


class NoAccount(SignInFailed):
    """It is clear who that is, and they may not come in."""

    def __init__(self, why: Literal["unknown", "taken", "name", "role", "disabled"]) -> None:
        super().__init__(why)
        self.why = why


class Outside:
    def __init__(self, auth: "Auth", roles: Mapping[str, str], *, creates: bool) -> None:
        """`roles`: by group. Where it is empty, roles are given here and stay as they are."""
        self._auth, self._roles, self._creates = auth, roles, creates

    async def account(self, known: Known) -> "User":
        """The account of this person, made now if need be, with the role that they have there. Raises NoAccount."""
        user = await self._auth.store.identities.find(known.issuer, known.subject)
        role = self._role(known.groups)
        if role == "none":
            raise NoAccount("role")
        if user is None:
            return await self._new(known, role or "staff")
        if user.disabled:
            raise NoAccount("disabled")
        return await self._with_role(user, role, known.issuer) if role and role != user.role else user

    def _role(self, groups: frozenset[str]) -> "UserRole | Literal['none'] | None":
        """None: roles are not given there. "none": this person is in no group that may come in."""
        if not self._roles:
            return None
        given = {self._roles[group] for group in groups if group in self._roles}
        found = next((role for role in ROLES if role in given), None)
        return found or ("none" if "staff" in self._roles.values() else "staff")

    async def _new(self, known: Known, role: "UserRole") -> "User":
        if not self._creates:
            raise NoAccount("unknown")
        name = known.name.strip()
        if name_trouble(language("en"), name):
            raise NoAccount("name")
        user = await self._auth.store.identities.create_user(name, role, known.issuer, known.subject)
        if user is None:  # another's name, or the same person in two windows
            if user := await self._auth.store.identities.find(known.issuer, known.subject):
                return user
            raise NoAccount("taken")
        await self._auth.store.audit.add(name, "user.create", name, f"{role}, by {known.issuer}")
        return user

    async def _with_role(self, user: "User", role: "UserRole", issuer: str) -> "User":
        if not await self._auth.store.users.set_role(user.id, role):
            logger.warning("{!r} is the last administrator here, so the role {} of {} waits", user.name, role, issuer)
            return user
        await self._auth.store.audit.add(user.name, "user.role", user.name, f"{user.role} → {role}, by {issuer}")
        await self._auth.user_changed(user.id)
        return await self._auth.store.users.get(user.id) or user


def group_roles(setting: str) -> dict[str, str]:
    """A directory's groups by DN, as QDESK_LDAP_ROLES names them."""
    return {normal_dn(group): role for group, role in role_map(setting).items()}


def normal_dn(dn: str) -> str:
    """A DN as it is compared: without regard to case and to spaces around commas."""
    return re.sub(r"\s*,\s*", ",", dn.strip().lower())
