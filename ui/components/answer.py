"""One running answer on one page: follows the job, renders what comes, and sends it ten times a second at most.

The page can go away and come back: what it has missed is made good by a snapshot. Knows nothing of the store.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing

from engine.job import Job, Update
from engine.types import opening
from ui.components.markdown import MarkdownStream, Part
from ui.components.thread import Thread, Turn

SEND_EVERY_S = 0.1
RENDER_SHARE = 0.1  # of the event loop's time that rendering one answer may take; a costly one is shown less often


class RunningAnswer:
    def __init__(self, job: Job, thread: Thread, frame: Callable[[Job], Turn]) -> None:
        """`frame` gives the turn of a job without its answer."""
        self.job = job
        self._thread, self._frame = thread, frame
        self._markdown = MarkdownStream()
        self._seq = 0  # deltas rendered
        self._sent = 0  # deltas that the browser was told of
        self._opening = opening(job.request.messages)
        self._markdown.feed(self._opening)
        self._look(job.update())

    def turn(self) -> Turn:
        """All of it as it stands now."""
        self._sent = self._seq
        shown = self._markdown
        turn = self._frame(self.job)
        turn["html"], turn["pieces"], turn["tail"] = shown.finished, shown.pieces, shown.tail
        turn["seq"], turn["begun"] = self._seq, self._seq > 0 or bool(self._opening)
        return turn

    async def follow(self) -> None:
        """Show what comes until the answer has ended."""
        async with aclosing(self.job.follow(self._seq)) as updates:
            async for update in updates:
                began = time.perf_counter()
                self._show(update)
                if not update.status.final:
                    await asyncio.sleep(max(SEND_EVERY_S, (time.perf_counter() - began) / RENDER_SHARE))

    def catch_up(self) -> None:
        """The browser is there again, or says that it misses something."""
        self._thread.put(self.turn())

    @property
    def all_sent(self) -> bool:
        """Whether the browser holds the whole answer, rendered for good."""
        return self._sent == self._seq

    def _look(self, update: Update) -> Part:
        """Render what an update brings. The end counts as one more delta, for it changes what is shown."""
        self._markdown.feed(update.text)
        ended = update.status.final
        self._seq = update.seq + ended
        return self._markdown.finish() if ended else self._markdown.take()

    def _show(self, update: Update) -> None:
        if not update.deltas and not update.status.final:
            if self._connected:
                self._thread.ticket(self.job.id, update)
            return
        since = self._seq
        part = self._look(update)
        if not self._connected:
            return  # messages would pile up; the snapshot will tell
        if self._sent == since:
            self._sent = self._seq
            self._thread.stream(self.job.id, since, self._seq, part)
        else:
            self.catch_up()

    @property
    def _connected(self) -> bool:
        return self._thread.client.has_socket_connection
