"""Sign-ins. Knows hashes of tokens and never a token."""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session as DatabaseSession
from sqlmodel import col, select

from engine.types import new_id
from storage.database import Database
from storage.models import SessionRow, UserRow
from storage.records import Session
from storage.users import user

SignIns = list[Session]  # the method `list` hides the type inside the class


class Sessions:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(
        self, user_id: str, token_hash: str, agent: str, expires_at: datetime, id_token: str = ""
    ) -> Session:
        """Begin a session of somebody who is seen by that, and clear away everybody's expired ones."""

        def work(session: DatabaseSession) -> Session:
            now = datetime.now(UTC)
            session.exec(sa.delete(SessionRow).where(col(SessionRow.expires_at) <= now))
            row = SessionRow(
                id=new_id(),
                user_id=user_id,
                token_hash=token_hash,
                agent=agent,
                created_at=now,
                last_seen_at=now,
                expires_at=expires_at,
                id_token=id_token,
            )
            session.add(row)
            session.flush()
            person = session.get_one(UserRow, user_id)
            person.last_seen_at = now
            return _session(row, person)

        return await self._database.write(work)

    async def find(self, token_hash: str) -> Session | None:
        """The running session of that token. None too when it has expired or the account is disabled."""
        found = await self._running(col(SessionRow.token_hash) == token_hash, col(UserRow.disabled).is_(False))
        return found[0] if found else None

    async def id_token(self, id: str) -> str:
        """By which token of an OpenID provider this session began; "" where it is not kept, or there was none."""
        rows = sa.select(col(SessionRow.id_token)).where(col(SessionRow.id) == id)
        return await self._database.read(lambda session: session.connection().execute(rows).scalar() or "")

    async def seen(self, id: str) -> None:
        await self._write(sa.update(SessionRow).where(col(SessionRow.id) == id).values(last_seen_at=datetime.now(UTC)))

    async def end(self, id: str) -> None:
        await self._write(sa.delete(SessionRow).where(col(SessionRow.id) == id), tells="access")

    async def end_all(self, user_id: str) -> None:
        await self._write(sa.delete(SessionRow).where(col(SessionRow.user_id) == user_id), tells="access")

    async def list(self, user_id: str) -> SignIns:
        """A person's running sessions, the one used last first."""
        return await self._running(col(SessionRow.user_id) == user_id)

    async def counts(self) -> dict[str, int]:
        """How many sessions run, by user id; people without one are not in it."""
        rows = (
            sa.select(col(SessionRow.user_id), sa.func.count())
            .where(col(SessionRow.expires_at) > datetime.now(UTC))
            .group_by(col(SessionRow.user_id))
        )

        def work(session: DatabaseSession) -> dict[str, int]:
            return {str(user_id): int(count) for user_id, count in session.connection().execute(rows)}

        return await self._database.read(work)

    async def _running(self, *conditions: sa.ColumnElement[bool]) -> SignIns:
        rows = (
            select(SessionRow, UserRow)
            .join(UserRow, col(UserRow.id) == col(SessionRow.user_id))
            .where(col(SessionRow.expires_at) > datetime.now(UTC), *conditions)
            .order_by(col(SessionRow.last_seen_at).desc(), col(SessionRow.id))
        )
        return await self._database.read(lambda session: [_session(*found) for found in session.exec(rows)])

    async def _write(self, change: sa.Update | sa.Delete, *, tells: str = "") -> None:
        await self._database.write(lambda session: session.exec(change), tells=tells)


def _session(row: SessionRow, owner: UserRow) -> Session:
    return Session(
        id=row.id,
        user=user(owner),
        agent=row.agent,
        created_at=row.created_at,
        last_seen_at=row.last_seen_at,
        expires_at=row.expires_at,
    )
