"""Processes that share a database: what one brings along, and what the others see of it. Knows no database."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Joining:
    """What a process brings along. `secret` is a mark of the session secret, which must be the same for all."""

    name: str
    secret: str
    heartbeat_s: float


@dataclass(frozen=True, slots=True)
class Member:
    id: str
    name: str
    started_at: datetime
