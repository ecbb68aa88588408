"""What administrators set beside the limits: the intake (open, paused, drained) and the limits of single persons.

All of it holds at once. A pause is kept over restarts; a drain is not, since one drains in order to restart. Knows
nothing of pages.
"""

import json
from typing import get_args

from loguru import logger

from engine.intake import Mode
from ui.desk import Desk

OPTION = "intake"
LONGEST = 300  # characters of what people read


async def set_intake(desk: Desk, mode: Mode, note: str = "") -> None:
    """Take requests in, or refuse what is new with these words. Nobody who is inside is put out."""
    kept = json.dumps({"mode": mode, "note": note}, ensure_ascii=False) if mode == "paused" else ""
    await desk.store.options.set(OPTION, kept)
    desk.service.intake.steer(mode, note)


async def apply_stored_intake(desk: Desk) -> None:
    """What the start calls, and a change in another process. What cannot be read is passed over with a warning.

    A drain is this process's alone, and is left as it is.
    """
    if not (stored := await desk.store.options.get(OPTION)):
        if desk.service.intake.mode == "paused":
            desk.service.intake.steer("open")
        return
    try:
        values = json.loads(stored)
        mode, note = values["mode"], values["note"]
        if mode not in get_args(Mode) or not isinstance(note, str):
            raise ValueError(stored)
    except (ValueError, TypeError, KeyError) as error:
        logger.warning("the stored pause is passed over, and requests are taken: {!r}", error)
        return
    desk.service.intake.steer(mode, note)


async def apply_own_limits(desk: Desk) -> None:
    """Tell the gate what the store says of single persons' limits: at the start, and after a change."""
    users = await desk.store.users.list()
    desk.service.gate.own_limits = {user.id: user.max_requests for user in users if user.max_requests is not None}
