"""The limits that administrators change while the server runs: what they are, how far they go, and where they are kept.

Knows nothing of pages. A stored change takes precedence over the settings until it is put back.
"""

import json
from dataclasses import asdict, dataclass, fields

from loguru import logger

from engine.gate import Limits
from engine.service import ChatService
from engine.settings import Settings
from ui.desk import Desk

OPTION = "limits"


@dataclass(frozen=True, slots=True)
class LiveLimits:
    concurrent: int
    waiting: int
    per_person: int
    max_new_tokens: int


Bounds = dict[str, tuple[int, int]]  # by field of LiveLimits: the least and the most that it may be


def limits_now(service: ChatService) -> LiveLimits:
    gate = service.gate.limits
    return LiveLimits(gate.concurrent, gate.waiting, gate.per_person, service.max_new_tokens)


def limits_of(settings: Settings) -> LiveLimits:
    """The limits as the server was configured."""
    return LiveLimits(
        settings.max_concurrent_requests,
        settings.max_waiting_requests,
        settings.max_requests_per_user,
        settings.max_new_tokens,
    )


def bounds(service: ChatService) -> Bounds:
    return {
        "concurrent": (1, service.backend.capacity or 256),
        "waiting": (0, 100_000),
        "per_person": (1, 1000),
        "max_new_tokens": (1, service.backend.context_tokens or service.settings.max_context_tokens),
    }


def apply_limits(service: ChatService, limits: LiveLimits) -> None:
    """Set them at once. Nobody who is inside is put out; those who wait may start."""
    service.max_new_tokens = limits.max_new_tokens
    service.change_limits(Limits(limits.concurrent, limits.waiting, limits.per_person))


async def keep_limits(desk: Desk, limits: LiveLimits) -> None:
    """Set them at once, and again at every start."""
    await desk.store.options.set(OPTION, json.dumps(asdict(limits)))
    apply_limits(desk.service, limits)


async def reset_limits(desk: Desk) -> None:
    """Go back to the settings."""
    await desk.store.options.set(OPTION, "")
    apply_limits(desk.service, limits_of(desk.settings))


async def apply_stored_limits(desk: Desk) -> None:
    """What the start calls, and a change in another process. What cannot be read is passed over with a warning."""
    stored = await desk.store.options.get(OPTION)
    try:
        apply_limits(desk.service, _read(stored) if stored else limits_of(desk.settings))
    except (ValueError, TypeError) as error:
        logger.warning("the stored limits are passed over, and the settings hold: {}", error)


def _read(stored: str) -> LiveLimits:
    values = json.loads(stored)
    limits = LiveLimits(**values)
    if any(type(values[field.name]) is not int or values[field.name] < 0 for field in fields(LiveLimits)):
        raise ValueError(f"{stored} holds something that is no number")
    if min(limits.concurrent, limits.per_person, limits.max_new_tokens) < 1:
        raise ValueError(f"{stored} would let nothing run")
    return limits
