"""The server's life: what starts with it, what runs beside it, and how it goes down without losing an answer.

On SIGTERM or Ctrl-C the service drains while the server still listens, so that load balancers and people see
"draining" instead of a closed door; only then is uvicorn told to stop. A second signal ends what is running at once.
An engine that only a new process mends ends the server too, for whoever starts it again. A shell that restores a copy
ends it in the same way; then it begins anew with the copy (main.py).
"""

import asyncio
import signal
from contextlib import suppress
from types import FrameType

from loguru import logger
from nicegui import app, background_tasks
from nicegui.server import Server

from engine.backends import Backend, MayBreak
from engine.errors import AccessEnded
from engine.settings import Settings
from engine.types import Status
from ui.api.access import DISABLED
from ui.banner import apply_stored_banner
from ui.cluster import Sharing
from ui.desk import Desk
from ui.handover import Handover
from ui.limits import apply_stored_limits
from ui.origins import ANYWHERE
from ui.retention import SteadyDays, retain
from ui.steering import apply_own_limits, apply_stored_intake

LOOK_S = 1.0  # between two looks whether a shell restores
HOUR_S, DAY_S = 3600.0, 24 * 3600.0
BROKEN_S = 3.0  # so long pages and load balancers can read why, before a server ends whose engine is broken


async def prepare(desk: Desk) -> None:
    """What must be so before the first request: the first account or the link to it, and what administrators set."""
    await desk.auth.setup.open(desk.settings.admin_password.get_secret_value())
    for apply in (apply_stored_limits, apply_own_limits, apply_stored_intake, apply_stored_banner):
        await apply(desk)


class Life:
    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.broken = ""  # why the server ended, if its engine did
        self.restores = False  # it ends to begin anew with a copy of the database
        self.handover = Handover(desk.settings.data_dir)
        self._settled = False  # what the server before left of a restore
        self._sharing = Sharing(desk)
        self._watching: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[None] | None = None

    def register(self) -> None:
        self.desk.auth.on_disabled = self._put_out
        app.on_startup(self._start)
        app.on_shutdown(self._close)

    async def _start(self) -> None:
        loop, self._starting = asyncio.get_running_loop(), asyncio.current_task()

        def on_signal(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(self._told_to_end)

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, on_signal)
        if self.desk.auth.setup.token:
            with suppress(OSError):  # the disk of the log may be full, and nobody at the other end of a pipe
                print(setup_link(self.desk.settings, self.desk.auth.setup.token), flush=True)
        background_tasks.create(self.desk.auth.keep_true(), name="sessions")
        background_tasks.create(self._retain(), name="retention")
        background_tasks.create(self._keep_minutes(), name="samples")
        background_tasks.create(self._await_restore(), name="restore")
        self._sharing.start()
        await self.desk.monitor.start()
        self.desk.service.on_loaded = self._watch
        await self.desk.service.start()

    def _watch(self, backend: Backend) -> None:
        if self._watching:
            self._watching.cancel()  # of a backend that was replaced
        if isinstance(backend, MayBreak):
            self._watching = background_tasks.create(self._end_when_broken(backend), name="broken engine")

    async def _end_when_broken(self, backend: MayBreak) -> None:
        self.broken = await backend.broken()
        logger.critical("the server ends with its engine: {}", self.broken)
        await asyncio.sleep(BROKEN_S)
        self._stop_soon()

    async def _await_restore(self) -> None:
        """End as at a signal when a shell has a copy of the database ready, so that main.py can put it in place.

        While answers finish the shell may give up, and another one come, which is told the same.
        """
        while True:
            await asyncio.sleep(LOOK_S)
            ends_for_good = self._stopping is not None and not self.restores
            if ends_for_good or not Server.instance.started or not await asyncio.to_thread(self._takes_a_copy):
                continue
            if self._stopping is None:
                logger.info("a copy is to be put in the place of the database, so the server begins anew")
                self.restores = True
                self._stop_soon()
            elif not self.restores:  # it was told to end during that look
                self._take_no_copy()

    def _takes_a_copy(self) -> bool:
        store, drain_s = self.desk.store, self.desk.settings.drain_s
        try:
            if not self._settled:
                self.handover.settle(store.is_staged, store.unstage)
                self._settled = True
            if asked := self.handover.is_asked(store.is_staged, store.unstage):
                self.handover.tell("ending", f"{drain_s:g}")
        except OSError as error:
            logger.warning("whether a copy of the database is to be restored cannot be read: {}", error)
            return False
        return asked

    def _told_to_end(self) -> None:
        """By a signal."""
        if self.restores:  # it ends anyway, but now for good
            self._take_no_copy()
        elif self._stopping is None:
            self._stop_soon()
        else:
            for job in list(self.desk.service.jobs.values()):
                self.desk.service.end(job, Status.INTERRUPTED)

    def _take_no_copy(self) -> None:
        """Withdraw it too, else the shell puts it in place when the server has ended, as it does where one died."""
        self.restores = False
        try:
            self.desk.store.withdraw()
            if self.handover.said():
                self.handover.tell("refused", "The server was told to end before it took the copy.")
        except OSError as error:
            logger.warning("the shell that restores cannot be told why no copy is taken: {}", error)
            with suppress(OSError):
                self.handover.forget()

    def _stop_soon(self) -> None:
        if self._stopping is None:
            logger.info("stopping: running answers may finish for {:g} s", self.desk.settings.drain_s)
            self._stopping = asyncio.create_task(self._stop(), name="stop")

    async def _stop(self) -> None:
        try:
            await self.desk.service.stop()
        finally:
            Server.instance.should_exit = True

    async def _close(self) -> None:
        if self._stopping is None:  # stopped in another way than by a signal
            await self.desk.service.stop()
        if self._starting:
            self._starting.cancel()  # it may still be loading the model
        await self.desk.monitor.stop()
        self._sharing.stop()
        self.desk.auth.close()
        await asyncio.to_thread(self.desk.store.close)

    async def _keep_minutes(self) -> None:
        """Write down each minute of the monitor's, for ever. One that cannot be written is given up."""
        while True:
            minute = await self.desk.monitor.history.next_minute()
            try:
                await self.desk.store.samples.add(minute)
            except Exception as error:
                logger.warning("a minute's sample is not kept: {!r}", error)

    def _put_out(self, user_id: str) -> None:
        """Nothing of a disabled account goes on running or waiting, wherever it was disabled."""
        for job in list(self.desk.service.jobs.values()):
            if job.request.person == user_id:
                self.desk.service.end(job, Status.CANCELLED, AccessEnded(DISABLED))

    async def _retain(self) -> None:
        """Delete what is older than it may become, once a day; the first time when the clock has had time to be set."""
        days, wait_s = SteadyDays(), HOUR_S
        while True:
            await asyncio.sleep(wait_s)
            if not days.steady():
                logger.warning(
                    "the clock was set, so nothing is deleted for its age until it has been steady for an hour"
                )
                wait_s = HOUR_S
                continue
            wait_s = DAY_S
            try:
                await self.desk.store.samples.trim()
                await retain(self.desk)
            except Exception as error:
                logger.error("retention failed, and will be tried again: {!r}", error)


def base_url(settings: Settings) -> str:
    """Where a browser on this machine, or by the public address, finds the server."""
    host = "127.0.0.1" if settings.host in ANYWHERE else settings.host
    return settings.public_url.rstrip("/") or f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def setup_link(settings: Settings, token: str) -> str:
    base = base_url(settings)
    return f"\nMake the first account here (the link works once, for a day):\n\n    {base}/setup?token={token}\n"
