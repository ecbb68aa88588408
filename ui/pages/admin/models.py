"""The model that answers: which, why, how large, how it was loaded; and loading another of the listed ones.

What that would change is said before it is done. It goes on by itself: the page may be closed meanwhile.
"""

from nicegui import ui

from engine.errors import EngineError
from engine.monitor import Sample
from ui.components.data_table import Action, Column, DataTable, Row
from ui.components.dialogs import titled
from ui.components.figures import Figures
from ui.engine_words import in_words
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.tiles import duration
from ui.pages.admin.tiles_model import loaded_in, model
from ui.theme import heading


class Models:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say
        self.service = admin.desk.service
        self._asked = ""  # the model that the open dialog is about

    def build(self) -> None:
        say, listed = self.say, self.service.settings.listed_models
        heading(say("Model"), 2)
        self.figures = Figures()
        heading(say("Listed models"), 2)
        self.now = ui.label().classes("soft").props('role="status"')
        columns = [
            Column("name", say("Model"), "main"),
            Column("state", say("State")),
            Column("actions", say("Actions"), "actions"),
        ]
        self.table = DataTable(columns, caption=say("Listed models"), empty="", on_act=self._ask)
        if len(listed) == 1:
            ui.label(say("QDESK_MODELS lists others, which can then be loaded here.")).classes("soft")
        self._dialog()
        self._show(self.desk.monitor.now)
        self.admin.client.on_delete(self.desk.monitor.watch(self._show))

    # --- how it stands ---

    def _show(self, sample: Sample) -> None:
        service = self.service
        loaded = loaded_in(self.say, service.load_s, service.warm_up_s)
        self.figures.show([*model(self.say, service.backend, cache=False), loaded])
        self.now.text = self._under_way(sample)
        self.now.visible = bool(self.now.text)
        self.table.show([self._row(name) for name in service.settings.listed_models])

    def _under_way(self, sample: Sample) -> str:
        say, switching = self.say, self.service.switching
        match switching.step:
            case "finishing":
                inside = say.number(len(self.service.gate.running))
                return say("{name} is loaded when running answers have finished: {n}.", name=switching.wanted, n=inside)
            case "loading":
                waiting = say.number(sample.waiting)
                return say("{name} is being loaded. Requests that wait: {n}.", name=switching.wanted, n=waiting)
        return ""

    def _row(self, name: str) -> Row:
        say, switching = self.say, self.service.switching
        current = name == switching.name and not self.service.intake.failure
        label = say("Load again…") if name == switching.name else say("Load…")
        actions = () if switching.step or self.service.intake.is_loading else (Action("load", label),)
        return Row(name, (name, self._state(name, current), actions))

    def _state(self, name: str, current: bool) -> str:
        say, switching = self.say, self.service.switching
        if name == switching.wanted:
            return say("waits for running answers") if switching.step == "finishing" else say("is being loaded")
        if switching.failure and switching.failure[0] == name:
            return say("could not be loaded: {reason}", reason=in_words(say, switching.failure[1]))
        if not current or switching.step == "loading":
            return ""
        model = self.service.backend.model  # "auto", say, is no model's name
        return say("answers") if model in ("", name) else f"{say('answers')}: {model}"

    # --- loading one ---

    def _dialog(self) -> None:
        with titled() as (self.dialog, self.title):
            self.effects = ui.element("ul").classes("effects")
            with ui.element("div").classes("dialog-buttons"):
                ui.button(self.say("Back"), on_click=self.dialog.close).props("flat no-caps")
                ui.button(self.say("Load it"), on_click=self._load).props("no-caps unelevated")

    async def _ask(self, action: str, name: str, value: str | None) -> None:
        if not self.admin.may():
            return
        self._asked = name
        self.title.text = self.say("Load {name}?", name=name)
        self.effects.clear()
        with self.effects:
            for sentence in self._preview(name):
                with ui.element("li"):
                    ui.label(sentence)
        self.dialog.open()

    def _preview(self, name: str) -> list[str]:
        """What would change, and for whom."""
        say, service = self.say, self.service
        running, waiting, earlier = len(service.gate.running), service.gate.waiting, service.switching.name
        said = []
        if running:
            time = duration(say, int(service.settings.drain_s))
            said.append(say("Running: {n}. They get {time} to finish; then they are stopped.", n=running, time=time))
        if waiting:
            said.append(say("Waiting: {n}. They go on waiting, and then run on this model.", n=waiting))
        said.append(say("While the model is loaded, new questions are refused, and pages show how far it is."))
        if name != earlier:
            said.append(say("If it cannot be loaded, {name} is loaded again.", name=earlier))
            first = service.settings.model
            said.append(say("After a restart of the server it is {name} again, as in the settings.", name=first))
        return said

    async def _load(self) -> None:
        name = self._asked
        self.dialog.close()
        if not self.admin.may() or not await self.admin.noted("model.load", name):
            return
        try:
            self.service.switching.begin(name)
        except EngineError as refused:
            self.admin.warn(in_words(self.say, str(refused)))
        self._show(self.desk.monitor.now)
