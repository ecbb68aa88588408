"""Accounts. Knows hashes of passwords and never a password."""

import unicodedata
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import Sampling, new_id
from storage.database import Database
from storage.models import UserRow
from storage.records import User, UserRole
from storage.rows import sampling_from_json, sampling_to_json

Accounts = list[User]  # the method `list` hides the type inside the class


class Users:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, name: str, password_hash: str, role: UserRole) -> User | None:
        """Make an account. None: the name is taken, be it in other case."""
        try:
            return await self._database.write(lambda session: insert(session, name, password_hash, role))
        except sa.exc.IntegrityError:
            return None

    async def create_first(self, name: str, password_hash: str) -> User | None:
        """Make the first administrator. None: there is one already, also when two ask at once."""

        def work(session: Session) -> User | None:
            lock(session)
            if session.exec(select(UserRow.id).where(col(UserRow.role) == "admin").limit(1)).first():
                return None
            return insert(session, name, password_hash, "admin")

        try:
            return await self._database.write(work)
        except sa.exc.IntegrityError:
            return None

    async def get(self, id: str) -> User | None:
        return await self._one(col(UserRow.id) == id)

    async def by_name(self, name: str) -> User | None:
        return await self._one(col(UserRow.name_key) == _key(name))

    async def password_hash(self, name: str) -> tuple[User, str] | None:
        """The account of that name, in any case, with the hash of its password."""

        def work(session: Session) -> tuple[User, str] | None:
            row = session.exec(select(UserRow).where(col(UserRow.name_key) == _key(name))).first()
            return (user(row), row.password_hash) if row else None

        return await self._database.read(work)

    async def count(self) -> int:
        return await self._database.read(lambda session: session.exec(select(sa.func.count(col(UserRow.id)))).one())

    async def set_role(self, id: str, role: UserRole) -> bool:
        """False: this is the last enabled administrator, or there is no such account. Nothing is changed then."""
        return await self._change_unless_last_admin(id, keeps_admin=role == "admin", role=role)

    async def set_disabled(self, id: str, disabled: bool) -> bool:
        """False: this is the last enabled administrator, or there is no such account. Nothing is changed then."""
        return await self._change_unless_last_admin(id, keeps_admin=not disabled, disabled=disabled)

    async def set_password(self, id: str, password_hash: str) -> None:
        await self._set(id, password_hash=password_hash)

    async def set_max_requests(self, id: str, most: int | None) -> None:
        """How many requests this person may have running and waiting at once; None = as everybody."""
        await self._set(id, max_requests=most, tells="own_limits")

    async def set_preferences(self, id: str, *, language: str | None = None, theme: str | None = None) -> None:
        """Change what is given; None leaves it as it is, "" goes back to the browser's or system's."""
        given = {"language": language, "theme": theme}
        await self._set(id, **{name: value for name, value in given.items() if value is not None})

    async def defaults(self, id: str) -> tuple[str | None, Sampling | None]:
        """The system prompt and the sampling that this person's new conversations begin with; None is the server's."""

        def work(session: Session) -> tuple[str | None, Sampling | None]:
            row = session.get(UserRow, id)
            if row is None:
                return None, None
            return row.system_prompt, None if row.sampling is None else sampling_from_json(row.sampling)

        return await self._database.read(work)

    async def set_defaults(self, id: str, *, system_prompt: str | None, sampling: Sampling | None) -> None:
        """Set both; None goes back to the server's."""
        values = None if sampling is None else sampling_to_json(sampling)
        await self._set(id, system_prompt=system_prompt, sampling=values)

    async def seen(self, id: str) -> None:
        await self._set(id, last_seen_at=datetime.now(UTC))

    async def list(self) -> Accounts:
        """All accounts, by name."""
        rows = select(UserRow).order_by(col(UserRow.name_key))
        return await self._database.read(lambda session: [user(row) for row in session.exec(rows)])

    async def _one(self, condition: sa.ColumnElement[bool]) -> User | None:
        def work(session: Session) -> User | None:
            row = session.exec(select(UserRow).where(condition)).first()
            return user(row) if row else None

        return await self._database.read(work)

    async def _set(self, id: str, *, tells: str = "", **values: object) -> None:
        if values:
            change = sa.update(UserRow).where(col(UserRow.id) == id).values(**values)
            await self._database.write(lambda session: session.exec(change), tells=tells)

    async def _change_unless_last_admin(self, id: str, *, keeps_admin: bool, **values: object) -> bool:
        def work(session: Session) -> bool:
            lock(session)
            row = session.get(UserRow, id)
            if row is None or (not keeps_admin and _is_last_admin(session, row)):
                return False
            row.sqlmodel_update(values)
            return True

        return await self._database.write(work, tells="access")


def user(row: UserRow) -> User:
    return User(
        id=row.id,
        name=row.name,
        role=row.role,  # type: ignore[arg-type]  # only UserRole is ever written
        disabled=row.disabled,
        language=row.language,
        theme=row.theme,
        created_at=row.created_at,
        last_seen_at=row.last_seen_at,
        max_requests=row.max_requests,
        second_step=row.totp_nonce != "",
    )


def lock(session: Session) -> None:
    """Let nobody else change accounts until the commit. SQLite's writer has the whole database to itself anyway."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection().exec_driver_sql("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE")


def insert(session: Session, name: str, password_hash: str, role: UserRole) -> User:
    """Raises IntegrityError where the name is taken."""
    row = UserRow(
        id=new_id(),
        name=name,
        name_key=_key(name),
        password_hash=password_hash,
        role=role,
        created_at=datetime.now(UTC),
    )
    session.add(row)
    session.flush()
    return user(row)


def _is_last_admin(session: Session, row: UserRow) -> bool:
    if row.role != "admin" or row.disabled:
        return False
    others = select(UserRow.id).where(
        col(UserRow.role) == "admin", col(UserRow.disabled).is_(False), col(UserRow.id) != row.id
    )
    return session.exec(others.limit(1)).first() is None


def _key(name: str) -> str:
    """The same for ADA, ada, and the full-width letters that a Chinese keyboard may write."""
    return unicodedata.normalize("NFKC", name).casefold()
