"""Who accounts are elsewhere: one row for each subject of an issuer, which leads to one account and never to two."""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from storage.database import Database
from storage.models import IdentityRow, UserRow
from storage.records import User, UserRole
from storage.users import insert, user


class Identities:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, issuer: str, subject: str) -> User | None:
        """The account of this subject, disabled or not."""
        rows = (
            select(UserRow)
            .join(IdentityRow, col(IdentityRow.user_id) == col(UserRow.id))
            .where(col(IdentityRow.issuer) == issuer, col(IdentityRow.subject) == subject)
        )

        def work(session: Session) -> User | None:
            row = session.exec(rows).first()
            return user(row) if row else None

        return await self._database.read(work)

    async def create_user(self, name: str, role: UserRole, issuer: str, subject: str) -> User | None:
        """Make an account without a password for this subject. None: the name or the subject has an account already."""

        def work(session: Session) -> User:
            made = insert(session, name, "", role)
            session.add(_row(made.id, issuer, subject))
            return made

        try:
            return await self._database.write(work)
        except sa.exc.IntegrityError:
            return None

    async def link(self, user_id: str, issuer: str, subject: str) -> bool:
        """Let the subject lead to this account. False: it leads to one already."""
        try:
            await self._database.write(lambda session: session.add(_row(user_id, issuer, subject)))
        except sa.exc.IntegrityError:
            return False
        return True

    async def unlink(self, user_id: str, issuer: str) -> bool:
        """Whoever the account is at this issuer leads to it no more. False: there was nobody."""
        rows = sa.delete(IdentityRow).where(col(IdentityRow.user_id) == user_id, col(IdentityRow.issuer) == issuer)
        return await self._database.write(lambda session: session.exec(rows).rowcount > 0)

    async def issuers(self, user_id: str) -> set[str]:
        """Where this account is known."""
        rows = select(IdentityRow.issuer).where(col(IdentityRow.user_id) == user_id)
        return await self._database.read(lambda session: set(session.exec(rows)))

    async def of(self, user_id: str) -> list[tuple[str, str]]:
        """Who this account is elsewhere: issuer and subject."""
        rows = select(IdentityRow.issuer, IdentityRow.subject).where(col(IdentityRow.user_id) == user_id)
        return await self._database.read(lambda session: [(issuer, subject) for issuer, subject in session.exec(rows)])


def _row(user_id: str, issuer: str, subject: str) -> IdentityRow:
    return IdentityRow(issuer=issuer, subject=subject, user_id=user_id, created_at=datetime.now(UTC))
