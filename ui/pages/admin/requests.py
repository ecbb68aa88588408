"""One row a request, running or waiting. A prompt is shown only on demand, and looking at it is audited."""

from nicegui import background_tasks, ui

from engine.backends import KnowsStreams, StreamLook
from engine.errors import EndedByAdministrator
from engine.job import Job
from engine.types import Status
from ui.components.data_table import Action, Column, DataTable, Row
from ui.components.dialogs import titled
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.question import RequestQuestion
from ui.pages.admin.requests_elsewhere import RequestsElsewhere
from ui.pages.admin.tiles import duration


class Requests:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        self.names: dict[str, str] = {}  # of accounts, by id
        say = self.say
        columns = [
            Column("person", say("Person"), "main"),
            Column("source", say("Source")),
            Column("state", say("State")),
            Column("age", say("Age"), "number"),
            Column("tokens", say("Tokens"), "number"),
            Column("speed", say("Tokens/s"), "number"),
            Column("pages", say("Watching"), "number"),
            Column("slot", say("Slot"), "number"),
            Column("cached", say("Cached"), "number"),
            Column("actions", say("Actions"), "actions"),
        ]
        self.table = DataTable(
            columns, caption=say("Requests"), empty=say("Nothing is running or waiting."), on_act=self._act
        )
        self.question = RequestQuestion(admin)
        with titled() as (self.dialog, self.title):
            self.prompt = ui.label().classes("prompt").props("tabindex=0 dir=auto")
            with ui.element("div").classes("dialog-buttons"):
                ui.button(say("Close"), on_click=self.dialog.close).props("flat no-caps")
        self.dialog.on("hide", lambda: self.prompt.set_text(""))
        self.elsewhere = RequestsElsewhere(admin, self.question, self._show_prompt)

    def show(self) -> None:
        jobs = sorted(self.desk.service.jobs.values(), key=_place)
        if any(job.request.person and job.request.person not in self.names for job in jobs):
            background_tasks.create_lazy(self.learn_names(), name=f"names {self.admin.client.id}")
        self.table.show([*(self._row(job) for job in jobs), *self.elsewhere.rows()])

    async def learn_names(self) -> None:
        self.names = {user.id: user.name for user in await self.desk.store.users.list()}

    # --- a row ---

    def _row(self, job: Job) -> Row:
        say, look, waiting = self.say, self._look(job), job.status is Status.QUEUED
        open_prompt, cancel = Action("open", say("Prompt")), Action("cancel", say("Cancel"), "danger")
        to_front = [Action("front", say("To the front"))] if waiting and job.position else []
        cells = (
            self._person(job),
            say("page") if job.request.source == "page" else say("program"),
            self._state(job, look),
            duration(say, int(job.age_s)),
            say.number(job.completion_tokens) if job.completion_tokens else "",
            say.number(job.tokens_per_s, 1) if job.tokens_per_s else "",
            say.number(job.readers) if job.request.source == "page" else "",
            str(look.slot + 1) if look and look.slot is not None else "",
            say.number(look.cached_tokens) if look and look.slot is not None else "",
            (open_prompt, *to_front, cancel),
        )
        return Row(job.id, cells, tone="soft" if waiting else "")

    def _look(self, job: Job) -> StreamLook | None:
        backend = self.desk.service.backend
        return backend.look(job.id) if isinstance(backend, KnowsStreams) else None

    def _person(self, job: Job) -> str:
        person = job.request.person
        return self.names.get(person, "…") if person else self.say("fixed key")

    def _state(self, job: Job, look: StreamLook | None) -> str:
        say = self.say
        if job.status is Status.QUEUED:
            return say("waiting, place {n}", n=(job.position or 0) + 1)
        if job.first_token_s is not None:
            return say("answering")
        if look is None or not look.prompt_tokens:
            return say("reading the prompt")
        share = look.read_tokens / look.prompt_tokens
        return say("reading the prompt, {n}% of {tokens} tokens", n=int(100 * share), tokens=look.prompt_tokens)

    # --- what is done with it ---

    async def _act(self, name: str, id: str, value: str | None) -> None:
        if not self.admin.may():
            return
        job = self.desk.service.jobs.get(id)
        if job is None:
            await self.elsewhere.act(name, id)
        elif name == "open":
            await self._open(job)
        elif name == "cancel":
            self.question.cancel(self._person(job), lambda reason: self._cancel(job, reason))
        elif name == "front":
            self.question.to_front(self._person(job), lambda reason: self._to_front(job, reason))

    async def _cancel(self, job: Job, reason: str) -> None:
        if await self.admin.noted("request.cancel", job.id, f"{self._person(job)}: {reason}"):
            self.desk.service.end(job, Status.CANCELLED, EndedByAdministrator())

    async def _to_front(self, job: Job, reason: str) -> None:
        if await self.admin.noted("request.front", job.id, f"{self._person(job)}: {reason}"):
            if not self.desk.service.move_to_front(job):
                self.admin.tell(self.say("That request does not wait any more."))
            self.show()

    async def _open(self, job: Job) -> None:
        if await self.admin.noted("request.open", job.id, self._person(job)):
            self._show_prompt(self._person(job), job.request.prompt)

    def _show_prompt(self, whose: str, prompt: str) -> None:
        self.title.text = self.say("Prompt of {name}", name=whose)
        self.prompt.text = prompt
        self.dialog.open()


def _place(job: Job) -> tuple[bool, float]:
    """What runs first, the oldest on top; then the line in its order."""
    waiting = job.status is Status.QUEUED
    return waiting, (job.position or 0) if waiting else -job.age_s
