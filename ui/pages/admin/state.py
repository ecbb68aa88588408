"""The line on top of the administrators' pages: how the server stands, in words and a few numbers. Red in trouble."""

from nicegui import ui

from engine.intake import State
from engine.monitor import Sample
from ui.desk import Desk
from ui.engine_words import in_words
from ui.i18n import Language

TONES: dict[State, str] = {
    "ready": "good",
    "loading": "warn",
    "paused": "warn",
    "draining": "warn",
    "stalled": "bad",
    "failed": "bad",
}


class StateLine:
    """Shows what the newest sample says; follows the monitor until the page goes."""

    def __init__(self, desk: Desk, say: Language) -> None:
        self.desk, self.say = desk, say
        with ui.element("div").classes("state").props('role="status"') as self.line:
            self.word = ui.label().classes("word")
            self.reason = ui.label().classes("reason").props("dir=auto")
            self.numbers = ui.label().classes("numbers")
        self.progress = ui.linear_progress(show_value=False).props('aria-hidden="true"')
        self._tone = ""
        self.show(desk.monitor.now)
        ui.context.client.on_delete(desk.monitor.watch(self.show))

    def show(self, sample: Sample) -> None:
        say, service = self.say, self.desk.service
        state, reason = service.state()
        self._set_tone(TONES[state])
        self.word.text = _words(say)[state]
        self.reason.text = in_words(say, reason)
        self.reason.visible = bool(reason)
        self.numbers.text = say(
            "{running} running · {waiting} waiting · {speed} tokens/s",
            running=say.number(sample.running),
            waiting=say.number(sample.waiting),
            speed=say.number(sample.tokens_per_s),
        )
        loading = service.intake.loading
        self.progress.visible = state == "loading" and loading.total > 0
        self.progress.value = loading.done / loading.total if loading.total else 0

    def _set_tone(self, tone: str) -> None:
        if tone != self._tone:
            self.line.classes(remove=self._tone, add=tone)
            self._tone = tone


def _words(say: Language) -> dict[State, str]:
    return {
        "ready": say("Answering"),
        "loading": say("Loading"),
        "stalled": say("Stalled"),
        "paused": say("Paused"),
        "draining": say("Draining"),
        "failed": say("Not answering"),
    }
