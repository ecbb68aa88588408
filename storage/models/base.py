"""What every table has: names of constraints, and text that every database takes."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import Dialect
from sqlmodel import Field, SQLModel

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class PlainText(sa.types.TypeDecorator[str]):
    """Text that every database takes.

    A JSON body may carry NUL characters and lone surrogates. PostgreSQL refuses the former and UTF-8 the latter, and
    the record must not be lost for it.
    """

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else plain(value)


def plain(text: str) -> str:
    """Text without NUL characters and lone surrogates; U+FFFD stands where they were."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


class Base(SQLModel):
    metadata = sa.MetaData(naming_convention=NAMING)


def text(*, default: Any = ..., **column: Any) -> Any:
    return Field(default, sa_type=PlainText, **column)


def where(conditions: dict[str, str]) -> dict[str, Any]:
    """Options of an index over some rows only."""
    return {f"{name}_where": sa.text(condition) for name, condition in conditions.items()}
