"""Running a logged exchange again: a request of the reviewer's own, through the same gate as everybody's.

It has the messages of the logged one, the same sampling values or others, the source "review", and the logged exchange
as its parent. It belongs to no conversation, so nobody's conversation changes.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import replace

from engine.errors import EngineError
from engine.job import Job
from engine.types import ChatRequest, Exchange, Sampling
from ui.components.refusals import refusal
from ui.pages.review.reader import Reader

SEND_EVERY_S = 0.2


class Again:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._jobs: dict[str, Job] = {}

    async def begin(self, exchange: Exchange, fields: Mapping[str, object]) -> tuple[Job | None, str]:
        """Submit it, and write down who did; or why not, in a sentence for the reviewer."""
        reader = self._reader
        try:
            request = ChatRequest(
                messages=exchange.messages,
                sampling=changed(exchange.sampling, fields),
                person=reader.id,
                source="review",
                parent_id=exchange.id,
            )
            job = await reader.desk.service.submit(request)
        except EngineError as error:
            return None, refusal(error, reader.say)
        self._jobs[job.id] = job
        await reader.audit("review.rerun", target=exchange.id, detail=job.id)
        return job, ""

    async def follow(self, job: Job) -> AsyncGenerator[Exchange, None]:
        """The exchange as it grows, a few times a second, the final one last."""
        try:
            async with aclosing(job.follow()) as updates:
                async for update in updates:
                    yield job.exchange()
                    if not update.status.final:
                        await asyncio.sleep(SEND_EVERY_S)
        finally:
            self._jobs.pop(job.id, None)

    def stop(self, id: str) -> None:
        if job := self._jobs.get(id):
            self._reader.desk.service.stop_job(job)


def changed(sampling: Sampling, fields: Mapping[str, object]) -> Sampling:
    """The sampling with what the form says. Raises InvalidRequest for a value outside its range."""
    whole = {"seed": sampling.seed, "top_k": sampling.top_k, "max_tokens": sampling.max_tokens}
    real = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "repetition_penalty": sampling.repetition_penalty,
    }
    for name in whole:
        if isinstance(text := fields.get(name), str):
            whole[name] = _int(text, whole[name], may_be_empty=name != "top_k")
    for name in real:
        if isinstance(text := fields.get(name), str):
            with suppress(ValueError):
                real[name] = float(text)
    return replace(sampling, **whole, **real)  # type: ignore[arg-type]  # Sampling checks its values


def _int(text: str, before: int | None, *, may_be_empty: bool) -> int | None:
    if not text.strip() and may_be_empty:
        return None
    with suppress(ValueError):
        return int(text)
    return before
