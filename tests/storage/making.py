"""Exchanges and people for the store's tests."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from engine.types import Exchange, Message, Sampling, Status, new_id
from storage import Store
from storage.models import Base
from storage.records import User
from storage.rows import to_values

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def an_exchange(prompt: str = "What is WAL?", answer: str = "A write-ahead log.", **values: Any) -> Exchange:
    """A finished exchange, asked at NOON, with everything in it filled."""
    queued_at = values.get("queued_at", NOON)
    filled: dict[str, Any] = {
        "id": new_id(),
        "person": None,
        "source": "page",
        "conversation_id": None,
        "parent_id": None,
        "messages": (Message("system", "Be brief."), Message("user", prompt)),
        "answer": answer,
        "status": Status.DONE,
        "finish_reason": "stop",
        "error": None,
        "model": "Qwen2-7B-Instruct",
        "quantization": "nf4",
        "sampling": Sampling(temperature=0.3, seed=7, stop=("###", "完"), max_tokens=100),
        "prompt_tokens": 20,
        "cached_tokens": 5,
        "completion_tokens": 6,
        "queue_depth": 2,
        "queued_at": queued_at,
        "started_at": queued_at + timedelta(seconds=1),
        "first_token_at": queued_at + timedelta(seconds=1.5),
        "finished_at": queued_at + timedelta(seconds=4),
    }
    return Exchange(**filled | values)


async def a_person(store: Store, name: str = "ada") -> User:
    person = await store.users.create(name, f"hash of {name}'s password", "staff")
    assert person is not None
    return person


def fill(url: str, exchanges: Sequence[Exchange]) -> None:
    """Put very many exchanges in at once, past the store."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.begin() as connection:
        connection.execute(sa.insert(Base.metadata.tables["exchanges"]), [to_values(each) for each in exchanges])


async def delete_before(store: Store, when: datetime) -> int:
    """Let retention delete what was asked before `when`."""
    return (await store.retention.enforce({"exchanges": 1}, when + timedelta(days=1)))["exchanges"]
