"""Invitations to make an account: each opens once, and not for ever. Knows hashes of tokens and never a token."""

from datetime import UTC, datetime
from typing import Literal

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import new_id
from storage.database import Database
from storage.models import InviteRow
from storage.records import Invite, User, UserRole
from storage.users import insert

Invitations = list[Invite]  # the method `list` hides the type inside the class


class Invites:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self, token_hash: str, *, name: str, role: UserRole, invited_by: str, expires_at: datetime
    ) -> Invite:
        """`name` is what the account will be called; "" lets the invited person choose."""

        def work(session: Session) -> Invite:
            now = datetime.now(UTC)
            session.exec(sa.delete(InviteRow).where(col(InviteRow.expires_at) <= now))
            row = InviteRow(
                id=new_id(),
                token_hash=token_hash,
                name=name,
                role=role,
                invited_by=invited_by,
                created_at=now,
                expires_at=expires_at,
            )
            session.add(row)
            session.flush()
            return _invite(row)

        return await self._database.write(work)

    async def find(self, token_hash: str) -> Invite | None:
        """The invitation of that token. None too when it has been used, taken back, or is over."""
        return await self._database.read(lambda session: _found(_open(session, token_hash)))

    async def accept(self, token_hash: str, name: str, password_hash: str) -> User | Literal["taken", "over"]:
        """Make the account, and use the invitation up with it: both or neither, also when two ask at once."""

        def work(session: Session) -> User | Literal["over"]:
            if (row := _open(session, token_hash)) is None:
                return "over"
            role: UserRole = row.role  # type: ignore[assignment]  # only UserRole is ever written
            used = session.exec(sa.delete(InviteRow).where(col(InviteRow.id) == row.id))
            return insert(session, row.name or name, password_hash, role) if used.rowcount else "over"

        try:
            return await self._database.write(work)
        except sa.exc.IntegrityError:
            return "taken"

    async def list(self) -> Invitations:
        """Those that are open, the newest first."""
        rows = (
            select(InviteRow)
            .where(col(InviteRow.expires_at) > datetime.now(UTC))
            .order_by(col(InviteRow.created_at).desc(), col(InviteRow.id))
        )
        return await self._database.read(lambda session: [_invite(row) for row in session.exec(rows)])

    async def take_back(self, id: str) -> bool:
        """False: there is no such invitation any more."""
        change = sa.delete(InviteRow).where(col(InviteRow.id) == id)
        return await self._database.write(lambda session: session.exec(change).rowcount == 1)


def _open(session: Session, token_hash: str) -> InviteRow | None:
    rows = select(InviteRow).where(
        col(InviteRow.token_hash) == token_hash, col(InviteRow.expires_at) > datetime.now(UTC)
    )
    return session.exec(rows).first()


def _found(row: InviteRow | None) -> Invite | None:
    return _invite(row) if row else None


def _invite(row: InviteRow) -> Invite:
    return Invite(
        id=row.id,
        name=row.name,
        role=row.role,  # type: ignore[arg-type]  # only UserRole is ever written
        invited_by=row.invited_by,
        created_at=row.created_at,
        expires_at=row.expires_at,
    )
