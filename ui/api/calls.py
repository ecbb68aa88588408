"""A program's call on its way in, whichever surface it came by: rate limit, idempotency key, and its requests together.

The same key of the same account gives the same exchanges, once: while they run, whoever asks again follows them; when
they have ended, they are told again from the log. Such requests go on for a while when their program has gone away.
"""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from weakref import WeakValueDictionary

from starlette.requests import Request

from engine.errors import BUSY_ELSEWHERE
from engine.types import ChatRequest
from ui.api.access import end_with_access
from ui.api.answers import Answer
from ui.api.bodies import Body
from ui.api.errors import ApiError
from ui.api.rate import RateLimit
from ui.api.replay import Replay
from ui.auth import Caller
from ui.desk import Desk

HEADER = "idempotency-key"
BEGINS_WITHIN = timedelta(seconds=15)  # from claiming a key to the first row in the log
LOOK_AGAIN_S = 0.2
TURNS = 50


class Calls:
    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.rate = RateLimit(desk.settings.api_rate_limit, desk.bus)
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()

    async def answers(self, request: Request, body: Body, asked: Sequence[ChatRequest]) -> Sequence[Answer]:
        """The answers to a call over HTTP. Raises EngineError, or ApiError for the key."""
        caller: Caller = request.state.caller
        key = request.headers.get(HEADER)
        if key is None:
            return await self.start(caller, asked)
        if not re.fullmatch(r"[\x21-\x7e]{1,255}", key):
            raise ApiError(400, "Idempotency-Key has 1 to 255 visible ASCII characters.", param="Idempotency-Key")
        said = f"{request.scope['path']} {body.model_dump_json()}"
        lock = self._locks.setdefault((caller.person or "", key), asyncio.Lock())
        async with lock:  # of two at once, the second finds what the first has begun
            return await self._once(caller, key, hashlib.sha256(said.encode()).hexdigest(), asked)

    async def start(self, caller: Caller, asked: Sequence[ChatRequest]) -> Sequence[Answer]:
        """Hand the requests in, all or none; they end when the caller may ask no more. Raises EngineError."""
        jobs = await self.desk.service.submit_all(asked)
        for job in jobs:
            end_with_access(self.desk, caller, job)
        return jobs

    async def _once(self, caller: Caller, key: str, body_hash: str, asked: Sequence[ChatRequest]) -> Sequence[Answer]:
        person, keys = caller.person or "", self.desk.store.idempotency
        for _ in range(TURNS):
            before = await keys.claim(person, key, body_hash, [request.id for request in asked])
            if before is None:
                return await self._begin(caller, key, asked)
            if before.body_hash != body_hash:
                message = "This Idempotency-Key was used for another request; take a new key for a new one."
                raise ApiError(422, message, param="Idempotency-Key", code="idempotency_key_reused")
            found = await self._found(before.exchange_ids)
            refused = any(isinstance(one, Replay) and one.exchange.error == BUSY_ELSEWHERE for one in found)
            if found and not refused:
                return found
            if refused or datetime.now(UTC) - before.created_at > BEGINS_WITHIN:  # the log has nothing left of it
                await keys.release(person, key)
            else:  # it is being taken in by another process just now
                await asyncio.sleep(LOOK_AGAIN_S)
        message = "What was asked under this Idempotency-Key is being taken in; ask again."
        raise ApiError(409, message, param="Idempotency-Key", code="request_in_progress", retry_after_s=1)

    async def _begin(self, caller: Caller, key: str, asked: Sequence[ChatRequest]) -> Sequence[Answer]:
        try:
            return await self.start(caller, [replace(request, outlives=True) for request in asked])
        except BaseException:
            await self.desk.store.idempotency.release(caller.person or "", key)
            raise

    async def _found(self, ids: Sequence[str]) -> list[Answer]:
        """The exchanges, running or ended; none where the log has lost one of them."""
        found: list[Answer] = []
        for id in ids:
            if job := self.desk.service.jobs.get(id):
                found.append(job)
            elif exchange := await self.desk.store.exchanges.get(id):
                found.append(Replay(exchange, self.desk))
        return found if len(found) == len(ids) else []
