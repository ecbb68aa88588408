"""Requests of other processes in the administrators' table, as their rows in the log say: a second late at most."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from nicegui import background_tasks

from engine.shared_places import SharedPlaces
from engine.types import Status
from ui.components.data_table import Action, Row
from ui.elsewhere import elsewhere, move_to_front, overrule
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.question import RequestQuestion
from ui.pages.admin.tiles import duration

if TYPE_CHECKING:
    from storage.records import ExchangeRow


class RequestsElsewhere:
    def __init__(
        self, admin: Administrator, question: RequestQuestion, show_prompt: Callable[[str, str], None]
    ) -> None:
        """`show_prompt` shows somebody's prompt: whose, and what."""
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        self._question, self._show_prompt = question, show_prompt
        self._rows: dict[str, ExchangeRow] = {}

    def rows(self) -> list[Row]:
        """As of the last look; the next one begins now."""
        if self.desk.store.cluster:
            background_tasks.create_lazy(self._look(), name=f"requests elsewhere for {self.admin.client.id}")
        line = self._line()
        rows = sorted(self._rows.values(), key=lambda row: line.get(row.id, -1))  # as they will run
        return [self._row(row, line.get(row.id)) for row in rows]

    def _line(self) -> dict[str, int]:
        """Where those stand that wait; who is not in the line any more was let in since the row was written."""
        places = self.desk.service.places
        line = places.positions() if isinstance(places, SharedPlaces) else {}
        return {id: line[id] for id, row in self._rows.items() if row.status is Status.QUEUED and id in line}

    async def _look(self) -> None:
        self._rows = {row.id: row for row in await elsewhere(self.desk)}

    def _row(self, row: "ExchangeRow", position: int | None) -> Row:
        say, age_s = self.say, (datetime.now(UTC) - row.queued_at).total_seconds()
        waiting, speed, only_that_process_knows = position is not None, tokens_per_s(row, age_s), ("", "", "")
        to_front = [Action("front", say("To the front"))] if position else []
        cells = (
            self._person(row),
            say("page") if row.source == "page" else say("program"),
            self._state(row, position),
            duration(say, int(age_s)),
            say.number(row.completion_tokens) if row.completion_tokens else "",
            say.number(speed, 1) if speed else "",
            *only_that_process_knows,
            (Action("open", say("Prompt")), *to_front, Action("cancel", say("Cancel"), "danger")),
        )
        return Row(row.id, cells, tone="soft" if waiting else "")

    def _state(self, row: "ExchangeRow", position: int | None) -> str:
        if position is not None:
            return self.say("waiting, place {n}, in another process", n=position + 1)
        if row.ttft_s is None:
            return self.say("reading the prompt, in another process")
        return self.say("answering, in another process")

    def _person(self, row: "ExchangeRow") -> str:
        return row.user_name or self.say("fixed key")

    async def act(self, name: str, id: str) -> None:
        """What is done with one of these rows; the administrator was asked for before."""
        row = self._rows.get(id)
        if row is None:
            self.admin.tell(self.say("That request has ended already."))
        elif name == "open":
            exchange = await self.desk.store.exchanges.get(id)
            if exchange and await self.admin.noted("request.open", id, self._person(row)):
                self._show_prompt(self._person(row), exchange.prompt)
        elif name == "cancel":
            self._question.cancel(self._person(row), lambda reason: self._cancel(row, reason))
        elif name == "front":
            self._question.to_front(self._person(row), lambda reason: self._to_front(row, reason))

    async def _cancel(self, row: "ExchangeRow", reason: str) -> None:
        if await self.admin.noted("request.cancel", row.id, f"{self._person(row)}: {reason}"):
            overrule(self.desk, row.id)

    async def _to_front(self, row: "ExchangeRow", reason: str) -> None:
        noted = await self.admin.noted("request.front", row.id, f"{self._person(row)}: {reason}")
        if noted and not move_to_front(self.desk, row.id):
            self.admin.tell(self.say("That request does not wait any more."))


def tokens_per_s(row: "ExchangeRow", age_s: float) -> float:
    """Since the first token, as the row was last written; 0 before the second."""
    if row.ttft_s is None or row.completion_tokens < 2 or age_s <= row.ttft_s:
        return 0.0
    return (row.completion_tokens - 1) / (age_s - row.ttft_s)
