"""Texts to begin a question with: people's own, and those that administrators share with everybody.

Knows nothing of who is an administrator: whoever passes None as the owner has made sure of it.
"""

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlmodel import Session, col, select

from engine.types import new_id
from storage.database import Database
from storage.models import TemplateRow
from storage.records import Template

Texts = list[Template]  # the method `list` hides the type inside the class


class Templates:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, user_id: str, name: str, text: str, *, shared: bool = False) -> Template:
        def work(session: Session) -> Template:
            now = datetime.now(UTC)
            row = TemplateRow(id=new_id(), user_id=user_id, shared=shared, name=name, text=text, updated_at=now)
            session.add(row)
            session.flush()
            return _template(row)

        return await self._database.write(work)

    async def change(self, id: str, user_id: str | None, name: str, text: str) -> bool:
        """Change one's own, or with None a shared one. False: there is no such template."""
        change = sa.update(TemplateRow).where(*_which(id, user_id))
        values = {"name": name, "text": text, "updated_at": datetime.now(UTC)}
        return await self._write(change.values(**values))

    async def remove(self, id: str, user_id: str | None) -> bool:
        """Delete one's own, or with None a shared one. False: there is no such template."""
        return await self._write(sa.delete(TemplateRow).where(*_which(id, user_id)))

    async def list(self, user_id: str) -> Texts:
        """A person's own and everybody's, by name."""
        rows = (
            select(TemplateRow)
            .where(sa.or_(col(TemplateRow.user_id) == user_id, col(TemplateRow.shared)))
            .order_by(sa.func.lower(col(TemplateRow.name)), col(TemplateRow.id))
        )
        return await self._database.read(lambda session: [_template(row) for row in session.exec(rows)])

    async def _write(self, change: sa.Update | sa.Delete) -> bool:
        return await self._database.write(lambda session: session.exec(change).rowcount == 1)


def _which(id: str, user_id: str | None) -> list[sa.ColumnElement[bool]]:
    if user_id is None:
        return [col(TemplateRow.id) == id, col(TemplateRow.shared).is_(True)]
    return [col(TemplateRow.id) == id, col(TemplateRow.user_id) == user_id, col(TemplateRow.shared).is_(False)]


def _template(row: TemplateRow) -> Template:
    return Template(
        id=row.id, user_id=row.user_id, shared=row.shared, name=row.name, text=row.text, updated_at=row.updated_at
    )
