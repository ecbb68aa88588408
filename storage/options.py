"""What administrators change while the server runs, kept over restarts: a name and a value, both text."""

from collections.abc import Callable

from sqlmodel import Session

from storage.database import Database
from storage.models import OptionRow
from storage.users import lock


class Options:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, name: str) -> str | None:
        def work(session: Session) -> str | None:
            row = session.get(OptionRow, name)
            return row.value if row else None

        return await self._database.read(work)

    async def once(self, name: str, value: str, holds: Callable[[str], bool]) -> str:
        """Set it where there is none that `holds`; return what is set. Of several at once one is the first."""

        def work(session: Session) -> str:
            lock(session)
            row = session.get(OptionRow, name, populate_existing=True)
            if row is None or not holds(row.value):
                row = session.merge(OptionRow(name=name, value=value))
            return row.value

        return await self._database.write(work)

    async def set(self, name: str, value: str) -> None:
        """The other processes on this database, if there are any, hear the name as a topic."""
        row = OptionRow(name=name, value=value)
        await self._database.write(lambda session: session.merge(row), tells=name)
