"""One row a request, running or waiting. A prompt is shown only on demand, and looking at it is audited."""

from nicegui import background_tasks, ui

from engine.job import Job
from engine.types import Status
from ui.components.data_table import Action, Column, DataTable, Row
from ui.pages.admin.administrator import Administrator
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
            Column("speed", say("Tokens per second"), "number"),
            Column("actions", say("Actions"), "actions"),
        ]
        self.table = DataTable(
            columns, caption=say("Requests"), empty=say("Nothing is running or waiting."), on_act=self._act
        )
        with ui.dialog() as self.dialog, ui.card().classes("dialog"):
            self.title = ui.label().classes("dialog-title")
            self.prompt = ui.label().classes("prompt").props("tabindex=0 dir=auto")
            with ui.element("div").classes("dialog-buttons"):
                ui.button(say("Close"), on_click=self.dialog.close).props("flat no-caps")
        self.dialog.on("hide", lambda: self.prompt.set_text(""))

    def show(self) -> None:
        jobs = sorted(self.desk.service.jobs.values(), key=_place)
        if any(job.request.person and job.request.person not in self.names for job in jobs):
            background_tasks.create_lazy(self.learn_names(), name=f"names {self.admin.client.id}")
        self.table.show([self._row(job) for job in jobs])

    async def learn_names(self) -> None:
        self.names = {user.id: user.name for user in await self.desk.store.users.list()}

    def _row(self, job: Job) -> Row:
        say = self.say
        source = say("page") if job.request.source == "page" else say("program")
        speed = say.number(job.tokens_per_s, 1) if job.tokens_per_s else ""
        tokens = say.number(job.completion_tokens) if job.completion_tokens else ""
        actions = (Action("open", say("Prompt")), Action("cancel", say("Cancel"), "danger"))
        cells = (self._person(job), source, self._state(job), duration(say, int(job.age_s)), tokens, speed, actions)
        return Row(job.id, cells, tone="soft" if job.status is Status.QUEUED else "")

    def _person(self, job: Job) -> str:
        person = job.request.person
        return self.names.get(person, "…") if person else self.say("fixed key")

    def _state(self, job: Job) -> str:
        if job.status is Status.QUEUED:
            return self.say("waiting, place {n}", n=(job.position or 0) + 1)
        return self.say("answering") if job.first_token_s is not None else self.say("reading the prompt")

    async def _act(self, name: str, id: str, value: str | None) -> None:
        if not self.admin.may():
            return
        job = self.desk.service.jobs.get(id)
        if job is None:
            self.admin.tell(self.say("That request has ended already."))
        elif name == "cancel":
            await self._cancel(job)
        elif name == "open":
            await self._open(job)

    async def _cancel(self, job: Job) -> None:
        if await self.admin.noted("request.cancel", job.id, self._person(job)):
            self.desk.service.end(job, Status.CANCELLED)

    async def _open(self, job: Job) -> None:
        if await self.admin.noted("request.open", job.id, self._person(job)):
            self.title.text = self.say("Prompt of {name}", name=self._person(job))
            self.prompt.text = job.request.prompt
            self.dialog.open()


def _place(job: Job) -> tuple[bool, float]:
    """What runs first, the oldest on top; then the line in its order."""
    waiting = job.status is Status.QUEUED
    return waiting, (job.position or 0) if waiting else -job.age_s
