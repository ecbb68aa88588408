"""Keys for programs. Knows hashes of keys and never a key."""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import new_id
from storage.database import Database
from storage.models import ApiKeyRow, UserRow
from storage.records import ApiKey, User
from storage.users import user

OwnedKeys = list[tuple[ApiKey, User]]
Keys = list[ApiKey]  # the method `list` hides the type inside the class


class ApiKeys:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, user_id: str, name: str, key_hash: str, prefix: str) -> ApiKey:
        def work(session: Session) -> ApiKey:
            row = ApiKeyRow(
                id=new_id(),
                user_id=user_id,
                name=name,
                key_hash=key_hash,
                prefix=prefix,
                created_at=datetime.now(UTC),
            )
            session.add(row)
            session.flush()
            return _api_key(row)

        return await self._database.write(work)

    async def find(self, key_hash: str) -> tuple[ApiKey, User] | None:
        """The key and whose it is. None too when the account is disabled."""
        rows = (
            select(ApiKeyRow, UserRow)
            .join(UserRow, col(UserRow.id) == col(ApiKeyRow.user_id))
            .where(col(ApiKeyRow.key_hash) == key_hash, col(UserRow.disabled).is_(False))
        )

        def work(session: Session) -> tuple[ApiKey, User] | None:
            found = session.exec(rows).first()
            return (_api_key(found[0]), user(found[1])) if found else None

        return await self._database.read(work)

    async def revoke(self, id: str, user_id: str) -> bool:
        """Delete a person's key. False: they have no such key."""
        change = sa.delete(ApiKeyRow).where(col(ApiKeyRow.id) == id, col(ApiKeyRow.user_id) == user_id)
        return await self._database.write(lambda session: session.exec(change).rowcount == 1, tells="access")

    async def seen(self, id: str) -> None:
        change = sa.update(ApiKeyRow).where(col(ApiKeyRow.id) == id).values(last_used_at=datetime.now(UTC))
        await self._database.write(lambda session: session.exec(change))

    async def list(self, user_id: str) -> Keys:
        """A person's keys, newest first."""
        rows = (
            select(ApiKeyRow)
            .where(col(ApiKeyRow.user_id) == user_id)
            .order_by(col(ApiKeyRow.created_at).desc(), col(ApiKeyRow.id))
        )
        return await self._database.read(lambda session: [_api_key(row) for row in session.exec(rows)])

    async def everybodys(self) -> OwnedKeys:
        """All keys with their owners, disabled ones too; by name, then the newest first."""
        rows = (
            select(ApiKeyRow, UserRow)
            .join(UserRow, col(UserRow.id) == col(ApiKeyRow.user_id))
            .order_by(col(UserRow.name_key), col(ApiKeyRow.created_at).desc(), col(ApiKeyRow.id))
        )
        return await self._database.read(
            lambda session: [(_api_key(row), user(owner)) for row, owner in session.exec(rows)]
        )


def _api_key(row: ApiKeyRow) -> ApiKey:
    return ApiKey(
        id=row.id,
        user_id=row.user_id,
        name=row.name,
        prefix=row.prefix,
        created_at=row.created_at,
        last_used_at=row.last_used_at,
    )
