"""Links that sign in to one account, once, within minutes. Knows hashes of tokens and never a token."""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from storage.database import Database
from storage.models import SignInLinkRow, UserRow
from storage.records import User
from storage.users import user


class SignInLinks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, token_hash: str, user_id: str, expires_at: datetime) -> None:
        def work(session: Session) -> None:
            session.exec(sa.delete(SignInLinkRow).where(col(SignInLinkRow.expires_at) <= datetime.now(UTC)))
            session.add(SignInLinkRow(token_hash=token_hash, user_id=user_id, expires_at=expires_at))

        await self._database.write(work)

    async def find(self, token_hash: str) -> User | None:
        """Whose link this is. None too when it was used, or is too old."""
        return await self._database.read(lambda session: _owner(session, token_hash))

    async def use(self, token_hash: str) -> User | None:
        """The same, and the link is used up, also when two ask at once."""

        def work(session: Session) -> User | None:
            owner = _owner(session, token_hash)
            gone = session.exec(sa.delete(SignInLinkRow).where(col(SignInLinkRow.token_hash) == token_hash))
            return owner if gone.rowcount else None

        return await self._database.write(work)


def _owner(session: Session, token_hash: str) -> User | None:
    rows = (
        select(UserRow)
        .join(SignInLinkRow, col(SignInLinkRow.user_id) == col(UserRow.id))
        .where(col(SignInLinkRow.token_hash) == token_hash, col(SignInLinkRow.expires_at) > datetime.now(UTC))
    )
    row = session.exec(rows).first()
    return user(row) if row else None
