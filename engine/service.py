"""The one place that joins gate, backend and record.

`submit` turns a ChatRequest into a Job that runs by itself; faces follow the job and may end it. Every way out, also
one that nobody thought of, goes through `_ended`, which frees the place exactly once and writes the final row.
Knows nothing of pages, HTTP or SQL. Lives on the event loop alone.
"""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

from loguru import logger

from engine.abandoned import end_when_abandoned
from engine.backends import Backend, create_backend
from engine.endings import how_it_ended
from engine.errors import BackendFailed, EngineError, InvalidRequest, NotReady, QueueFull
from engine.fitting import fitted
from engine.gate import Limits, Ticket
from engine.intake import Intake, State
from engine.job import Job, Outcome
from engine.places import Places
from engine.progress import console
from engine.recording import Recorder, Recording
from engine.settings import Settings
from engine.spare import SpareTime
from engine.switching import Switching
from engine.types import WARMING_UP, ChatRequest, Exchange, Progress, Status

SAVE_EVERY_S = 1.0  # a running answer's text so far goes into its row this often
ENDING_S = 10.0  # a stopping server waits no longer than this for a backend that does not let go of its streams
RECENT = 10_000  # finished requests kept for the figures on the admin page


class ChatService:
    def __init__(
        self,
        settings: Settings,
        backend: Backend,
        recorder: Recorder,
        make: Callable[[Settings], Backend] = create_backend,
        places: Places | None = None,
    ) -> None:
        self.settings, self.backend, self.recorder = settings, backend, recorder
        self._must_log = settings.on_log_failure == "refuse"
        self._recording = Recording(recorder, goes_on=not self._must_log)
        self.intake = Intake(settings, backend, recorder)
        self.places = places or Places()
        self.places.let_in, self.gate = self._let_in, self.places.gate
        self._wished = self.gate.limits = Limits(  # before this backend's capacity
            settings.max_concurrent_requests, settings.max_waiting_requests, settings.max_requests_per_user
        )
        self.spare = SpareTime(backend, self.gate)
        self.switching = Switching(self, make)
        self.max_new_tokens = settings.max_new_tokens
        self.jobs: dict[str, Job] = {}  # those whose final row is not written yet, in order of arrival
        self.recent: deque[Outcome] = deque(maxlen=RECENT)
        self.refused: Counter[str] = Counter()  # by error code
        self.on_outcome: list[Callable[[Outcome], None]] = []  # told once of every request that has ended
        self.on_closed: list[Callable[[Job], None]] = []  # told of every job whose final row is written
        self.on_loaded: Callable[[Backend], None] = lambda backend: None  # told of every backend that is ready
        self.generated_tokens = 0
        self.load_s: float | None = None  # how long the model took to load, and of that its warming up
        self.warm_up_s: float | None = None
        self.left = asyncio.Event()  # set whenever a place was given back
        self._asked: dict[str, tuple[ChatRequest, Backend]] = {}  # as it came, and the backend it was made to fit
        self._tickets: dict[Ticket, Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._endings: dict[str, tuple[Status, EngineError | None]] = {}  # jobs told to end, as what, and why
        self._admitted: dict[str, asyncio.Event] = {}
        self._closing: set[asyncio.Task[None]] = set()

    # --- loading and stopping ---

    async def start(self) -> None:
        """Load the backend. Never raises: a failure is kept, logged, and told to everybody who asks."""
        if self.intake.is_loading and (failure := await self.load()):  # else it was stopped before it came to this
            self.intake.fail(str(failure), failure.__cause__)

    async def load(self) -> EngineError | None:
        """Start the backend, and take requests from then on. Never raises; returns what went wrong."""
        began, stages = time.monotonic(), dict[str, float]()

        def report(progress: Progress) -> None:
            stages.setdefault(progress.stage, time.monotonic())
            self.intake.report(progress)

        try:
            await self.backend.start(console(report))
        except EngineError as error:
            return error
        except Exception as error:
            failure = EngineError(f"The model could not be loaded: {error}")
            failure.__cause__ = error
            return failure
        ready = time.monotonic()
        self.load_s, self.warm_up_s = ready - began, ready - stages.get(WARMING_UP, ready)
        self.intake.loaded()
        self.change_limits(self._wished)  # the capacity is known only now
        logger.info("ready: {} ({})", self.backend.model, self.backend.reason)
        self.on_loaded(self.backend)
        return None

    def use(self, backend: Backend) -> None:
        """Let another backend answer from now on; `load` starts it."""
        self.backend = self.intake.backend = self.spare.backend = backend

    async def stop(self) -> None:
        """Refuse what is new, let answers finish for `drain_s`, end the rest, and free the backend."""
        self.intake.close()
        self.switching.give_up()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.drain_s):
                await self._all_closed()
        for job in list(self.jobs.values()):
            self.end(job, Status.INTERRUPTED)
        with suppress(TimeoutError):
            async with asyncio.timeout(ENDING_S):
                await self._all_closed()
        try:
            async with asyncio.timeout(ENDING_S):
                await self.backend.stop()
        except TimeoutError:
            logger.error("the engine does not stop; it is left behind")

    @property
    def running(self) -> list[Job]:
        """Those that have a place to run."""
        return [job for ticket, job in self._tickets.items() if ticket.admitted_at is not None]

    def state(self) -> tuple[State, str]:
        """Where the service stands, and the reason in one sentence where it is not ready."""
        return self.intake.state(len(self.jobs))

    # --- requests ---

    async def submit(self, request: ChatRequest) -> Job:
        """Take a request in. Raises EngineError (NotReady, QueueFull, ContextOverflow, ...) and then leaves nothing."""
        return (await self.submit_all([request]))[0]

    async def submit_all(self, requests: Sequence[ChatRequest]) -> list[Job]:
        """Take all of them in, each with a place of its own, or none. Raises as `submit`."""
        depth, tickets = self.gate.depth, list[Ticket]()
        try:
            for request in requests:
                self._check(request)
                tickets.append(await self.places.enter(request.person, request.id))
            await self.spare.give_way()
            backend = self.backend
            fit = [await fitted(request, backend, self.max_new_tokens) for request in requests]
            for request in fit:
                self._check(request)  # again: the world may have changed while the tokens were counted
        except BaseException as error:
            for ticket in reversed(tickets):
                self._leave(ticket)
            if isinstance(error, EngineError):
                self.refused[error.code] += 1
            raise
        self._asked |= {request.id: (request, backend) for request in requests}
        return [
            self._launch(request, ticket, depth + n)
            for n, (request, ticket) in enumerate(zip(fit, tickets, strict=True))
        ]

    def check_open(self, person: str | None) -> None:
        """Raise as `submit` would for this person now, before anything is made ready for a request."""
        try:
            self.intake.check()
            self.gate.check(person, time.monotonic())
        except EngineError as refusal:
            self.refused[refusal.code] += 1
            raise

    def end(self, job: Job, status: Status, because: EngineError | None = None) -> None:
        """End a job that is waiting or running, as what `status` says; it keeps its text so far."""
        if job.id in self._tasks and job.id not in self._endings:
            self._endings[job.id] = (status, because)
            self._tasks[job.id].cancel()

    def stop_job(self, job: Job) -> None:
        """What a person's Stop or Leave does."""
        self.end(job, Status.CANCELLED if job.status is Status.QUEUED else Status.STOPPED)

    def move_to_front(self, job: Job) -> bool:
        """Make a waiting job the next to run. False: it does not wait any more."""
        ticket = next((ticket for ticket, known in self._tickets.items() if known is job), None)
        if ticket is None or ticket.admitted_at is not None:
            return False
        self.places.move_to_front(ticket)
        return True

    def change_limits(self, limits: Limits) -> None:
        """Set other limits at once. Nobody who is inside is put out."""
        self._wished = limits
        limits = replace(limits, concurrent=min(limits.concurrent, self.backend.capacity or limits.concurrent))
        self.places.change(limits)

    # --- one job's way ---

    def _launch(self, request: ChatRequest, ticket: Ticket, depth: int) -> Job:
        job = Job(request, model=self.backend.model, quantization=self.backend.quantization, queue_depth=depth)
        self.jobs[job.id] = self._tickets[ticket] = job
        self._admitted[job.id] = asyncio.Event()
        self._recording.write(job.exchange())
        self._tasks[job.id] = task = asyncio.create_task(self._run(job, ticket), name=f"job {job.id}")
        task.add_done_callback(lambda task: self._ended(job, ticket, task))
        if request.source != "api" or request.outlives:  # other programs end theirs themselves
            end_when_abandoned(job, self.settings.abandoned_after_s, self.end)
        self._let_in([ticket] if ticket.admitted_at is not None else [])
        return job

    async def _run(self, job: Job, ticket: Ticket) -> None:
        async with asyncio.timeout(self.settings.request_timeout_s):
            await self._admitted[job.id].wait()
            await self._fit_again(job)
            job.run()
            begun, logged, saved = self._recording.write(job.exchange()), False, time.monotonic()
            async with aclosing(self.backend.stream(job.request)) as events:
                async for event in events:
                    if not logged:
                        await self._be_in_the_log(begun)
                        logged = True
                    job.take(event)
                    if time.monotonic() - saved >= SAVE_EVERY_S:
                        self._recording.write(job.exchange())
                        saved = time.monotonic()
            if job.finish_reason is None:
                raise BackendFailed("The engine broke this answer off.")

    async def _fit_again(self, job: Job) -> None:
        """Count the tokens of what was made to fit for another model. Raises as `submit`."""
        asked, backend = self._asked.pop(job.id)
        if backend is self.backend:
            return
        if self.intake.failure:
            raise NotReady(self.intake.failure, code="engine_failed")
        request = await fitted(asked, self.backend, self.max_new_tokens)
        job.put_to(request, model=self.backend.model, quantization=self.backend.quantization)

    def _ended(self, job: Job, ticket: Ticket, task: asyncio.Task[None]) -> None:
        status, error = how_it_ended(job, task, self._endings.get(job.id), self.settings.request_timeout_s)
        if status is Status.DONE and ticket.admitted_at is not None:
            self.places.measure(time.monotonic() - ticket.admitted_at)
        self._leave(ticket)
        exchange = job.finish(status, error)
        for by_job in (self._tasks, self._endings, self._admitted, self._asked):
            by_job.pop(job.id, None)
        self.generated_tokens += job.completion_tokens
        if isinstance(error, QueueFull):  # of the servers behind a remote backend: refused, as the gate refuses
            self.refused[error.code] += 1
        else:
            self.recent.append(outcome := job.outcome(status))
            for told in self.on_outcome:
                told(outcome)
        self._closing.add(closing := asyncio.create_task(self._close(job, exchange), name=f"close {job.id}"))
        closing.add_done_callback(self._closing.discard)

    async def _close(self, job: Job, exchange: Exchange) -> None:
        """Write the final row, then tell the followers: what was seen to be finished survives a crash."""
        try:
            await self._recording.settled(self._recording.write(exchange))
        finally:
            self.jobs.pop(job.id).close(exchange.status)
            for told in self.on_closed:
                told(job)

    # --- odds and ends ---

    def _leave(self, ticket: Ticket) -> None:
        self._tickets.pop(ticket, None)
        self.places.leave(ticket)
        self.left.set()

    def _let_in(self, admitted: list[Ticket]) -> None:
        for ticket in admitted:
            if job := self._tickets.get(ticket):
                self._admitted[job.id].set()
        line = zip(self.gate.order(), self.gate.waits(time.monotonic()), strict=False)
        for position, (ticket, expected_wait_s) in enumerate(line):
            if job := self._tickets.get(ticket):
                job.wait_at(position, expected_wait_s)

    def _check(self, request: ChatRequest) -> None:
        if request.id in self.jobs:
            raise InvalidRequest(f"Request {request.id} is being answered already.", param="id")
        self.intake.check()

    async def _be_in_the_log(self, row: "asyncio.Future[None] | None") -> None:
        """Nobody sees a token of an exchange that is not in the log, which gets its time for this once an answer."""
        if not await self._recording.settled(row) and self._must_log:
            raise NotReady("The log cannot be written, so this is not answered.", code="log_failed")

    async def _all_closed(self) -> None:
        while self._tasks or self._closing:
            await asyncio.wait([*self._tasks.values(), *self._closing])
            await asyncio.sleep(0)  # done callbacks run in the loop's next turn
