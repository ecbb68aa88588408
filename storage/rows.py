"""Exchanges and sampling values to rows and back. Knows no database."""

import json
from dataclasses import asdict
from typing import Any

from engine.types import Exchange, Message, Sampling, Status
from storage.models import ExchangeTable


def to_values(exchange: Exchange) -> dict[str, Any]:
    """An exchange as column values, all but `number`."""
    values = {name: getattr(exchange, name) for name in Exchange.__dataclass_fields__}
    return values | {
        "status": str(exchange.status),
        "prompt": exchange.prompt,
        "messages": json.dumps([asdict(message) for message in exchange.messages], ensure_ascii=False),
        "sampling": sampling_to_json(exchange.sampling),
        "request_metadata": json.dumps(dict(exchange.request_metadata), ensure_ascii=False),
    }


def to_exchange(row: ExchangeTable, known: dict[Message, Message] | None = None) -> Exchange:
    """`known` are messages of its conversation's other exchanges, which tell the same again: they are held once."""
    messages = (Message(**message) for message in json.loads(row.messages))
    values: dict[str, Any] = {name: getattr(row, name) for name in Exchange.__dataclass_fields__}
    return Exchange(
        **values
        | {
            "status": Status(row.status),
            "messages": tuple(messages if known is None else (known.setdefault(one, one) for one in messages)),
            "sampling": sampling_from_json(row.sampling),
            "request_metadata": tuple(json.loads(row.request_metadata).items()),
        }
    )


def sampling_to_json(sampling: Sampling) -> str:
    return json.dumps(asdict(sampling), ensure_ascii=False)


def sampling_from_json(text: str) -> Sampling:
    values = json.loads(text)
    return Sampling(**values | {"stop": tuple(values["stop"])})
