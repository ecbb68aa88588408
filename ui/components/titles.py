"""Titles that the model makes while nobody asks it anything. Until then, and where it makes none, the first words stay.

One task for all pages, which lives while there is a title to be made. What is wanted is kept in memory alone: a title
is not worth more.
"""

import asyncio
from typing import TYPE_CHECKING

from loguru import logger
from nicegui import background_tasks

from engine.errors import EngineError
from engine.job import Job
from engine.titles import clean_title, title_request
from engine.types import Exchange, Status
from ui.desk import Desk

if TYPE_CHECKING:
    from ui.components.hub import Hub

LOOK_EVERY_S = 0.5  # nothing must run or wait at two looks in a row
MOST_WANTED = 200


class Titles:
    def __init__(self, desk: Desk, hub: "Hub") -> None:
        self._desk, self._hub = desk, hub
        self._wanted: dict[str, Exchange] = {}  # by conversation, the first turn
        self._task: asyncio.Task[None] | None = None

    def after(self, job: Job) -> None:
        """Make a title when this first question of a conversation has been answered."""
        if job.request.conversation_id and job.request.parent_id is None:
            background_tasks.create(self._want(job, job.request.conversation_id), name="a title is wanted")

    async def _want(self, job: Job, conversation_id: str) -> None:
        await job.closed()
        exchange = job.exchange()
        if exchange.status is not Status.DONE or not exchange.answer.strip() or len(self._wanted) >= MOST_WANTED:
            return
        self._wanted[conversation_id] = exchange
        if self._task is None:
            self._task = background_tasks.create(self._make_all(), name="make titles")

    async def _make_all(self) -> None:
        idle = False
        try:
            while self._wanted:
                await asyncio.sleep(LOOK_EVERY_S)
                was_idle, idle = idle, self._desk.service.spare.idle and self._desk.service.intake.trouble() is None
                if was_idle and idle:
                    await self._make(*next(iter(self._wanted.items())))
        finally:
            self._task = None

    async def _make(self, conversation_id: str, exchange: Exchange) -> None:
        """Make one title; the wish stays where somebody asks something meanwhile."""
        user_id = exchange.person or ""
        try:
            conversation = await self._desk.store.conversations.get(conversation_id, user_id)
            if conversation and not conversation.titled:
                answer = await self._desk.service.spare.answer(title_request(exchange))
                if answer is None:
                    return
                if title := clean_title(answer):
                    await self._entitle(conversation_id, user_id, title)
        except (EngineError, TimeoutError) as error:
            logger.info("no title for a conversation: {!r}", error)
        except Exception as error:
            logger.opt(exception=error).warning("no title for a conversation")
        del self._wanted[conversation_id]

    async def _entitle(self, conversation_id: str, user_id: str, title: str) -> None:
        if await self._desk.store.conversations.entitle(conversation_id, user_id, title):
            for view in self._hub.showing(conversation_id):
                view.renamed(title)
            await self._hub.list_changed(user_id)
