"""What administrators change while the server runs, kept over restarts: a name and a value, both text."""

from sqlmodel import Session

from storage.database import Database
from storage.models import OptionRow


class Options:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, name: str) -> str | None:
        def work(session: Session) -> str | None:
            row = session.get(OptionRow, name)
            return row.value if row else None

        return await self._database.read(work)

    async def set(self, name: str, value: str) -> None:
        await self._database.write(lambda session: session.merge(OptionRow(name=name, value=value)))
