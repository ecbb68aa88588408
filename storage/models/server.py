"""What the server keeps of its own life."""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field

from storage.models.base import Base, text


class AuditRow(Base, table=True):
    __tablename__ = "audit"
    __table_args__ = ({"sqlite_autoincrement": True},)
    id: int | None = Field(default=None, primary_key=True)
    at: datetime
    actor: str = text(index=True)
    action: str = text(index=True)
    target: str = text()
    detail: str = text()


class OptionRow(Base, table=True):
    __tablename__ = "options"
    name: str = text(primary_key=True)
    value: str = text()


class ProcessRow(Base, table=True):
    """One of the processes that share this database, and when it last said that it lives, by the database's clock."""

    __tablename__ = "processes"
    id: str = text(primary_key=True)
    name: str = text()  # for people: host and port
    secret: str = text()  # a mark of the session secret, which must be the same for all
    started_at: datetime
    seen_at: datetime


class PlacesRow(Base, table=True):
    """Who runs and who waits, in all processes together: one row (engine/shared_places.py)."""

    __tablename__ = "places"
    id: int = Field(primary_key=True)
    text: str = text()


class SampleRow(Base, table=True):
    """A minute. Counts and sketches of durations are JSON: they are read whole and added up in Python."""

    __tablename__ = "samples"
    id: int | None = Field(default=None, primary_key=True)
    at: datetime = Field(index=True)
    seconds: float
    running: float
    running_peak: int
    waiting: float
    waiting_peak: int
    tokens: int
    ended: str = text()
    refused: str = text()
    ttft: str = text()
    gaps: str = text()
    queue: str = text()
    cpu: float | None = None
    memory: int | None = Field(default=None, sa_type=sa.BigInteger)
    gpu: float | None = None
    gpu_memory: int | None = Field(default=None, sa_type=sa.BigInteger)
