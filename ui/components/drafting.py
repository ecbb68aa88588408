"""What the server does for a question that is still being written: it reads attached files and counts tokens.

A count is asked for when typing pauses; however many are asked for, one is made at a time, and of those that wait only
the newest. Knows nothing of the store.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from engine.errors import EngineError, InvalidRequest
from ui.components.attachments import LONGEST_MESSAGE, question_of, read_file
from ui.components.composer import Composer
from ui.components.prompt import messages_for
from ui.components.shown import Shown
from ui.desk import Desk
from ui.i18n import Language

Fields = dict[str, Any]


class Drafting:
    def __init__(self, desk: Desk, composer: Composer, say: Language, shown: Shown) -> None:
        self._desk, self._composer, self._say, self._shown = desk, composer, say, shown
        self._wanted: Fields | None = None
        self._counting = False

    def handlers(self) -> list[tuple[str, Callable[[Fields], Awaitable[None]]]]:
        return [("attach", self._attach), ("count", self._count)]

    async def _attach(self, fields: Fields) -> None:
        key = str(fields.get("key", ""))[:64]
        try:
            file = await asyncio.to_thread(read_file, fields.get("name"), fields.get("data"), self._say)
        except InvalidRequest as error:
            self._composer.unreadable(key, str(error))
        else:
            self._composer.attached(key, file.name, file.text)

    async def _count(self, fields: Fields) -> None:
        self._wanted = fields
        if self._counting:
            return
        self._counting = True
        try:
            while wanted := self._wanted:
                self._wanted = None
                await self._tell(wanted)
        finally:
            self._counting = False

    async def _tell(self, fields: Fields) -> None:
        question, backend, say = question_of(fields), self._desk.service.backend, self._say
        limit = backend.context_tokens - 1  # one is left for the answer
        if limit < 1 or len(question) > LONGEST_MESSAGE:
            return  # the model is not loaded, or the composer itself says that it is too long
        count, own = backend.count_tokens, self._shown.chosen.system_prompt
        system_prompt = self._desk.settings.system_prompt if own is None else own
        messages = await messages_for(question, [], system_prompt, count=count, room=limit)
        try:
            tokens = await asyncio.to_thread(count, messages)
        except EngineError:
            return  # whoever sends it is told
        number = say.number
        if tokens <= limit:
            text = say("{tokens} tokens, room for {left} more", tokens=number(tokens), left=number(limit - tokens))
        else:
            text = say(
                "{over} tokens too long: the model reads {limit}", over=number(tokens - limit), limit=number(limit)
            )
        self._composer.counted(str(fields.get("mark", ""))[:64], text, over=tokens > limit)
