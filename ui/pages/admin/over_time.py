"""How it was: charts of the last quarter of an hour, hour, day or week. Drawn anew when a step of time has passed."""

from urllib.parse import urlencode

from nicegui import background_tasks, ui

from engine.monitor import Sample
from ui.components.timeline import Timeline
from ui.i18n import Language
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.charts import charts
from ui.pages.admin.ranges import RANGES, Range, Ranges
from ui.theme import heading


class OverTime:
    def __init__(self, admin: Administrator, ranges: Ranges) -> None:
        self.admin, self.desk, self.say, self.ranges = admin, admin.desk, admin.say, ranges
        asked = ui.context.client.request.query_params.get("range", "")
        self.range: Range = RANGES.get(asked, RANGES["live"])
        self._drawn: object = None  # what stands on the page

    async def build(self) -> None:
        say = self.say
        heading(say("Over time"), 2)
        with ui.element("div").classes("range-row"):
            self.choice = ui.toggle(_names(say), value=self.range.key, on_change=self._choose)
            self.choice.props("no-caps unelevated dense").classes("ranges")
            ui.element("span").classes("spring")
            self.download = ui.link(say("CSV"), "").classes("small-button")
        self.timeline = Timeline(say)
        await self._draw()
        self.admin.client.on_delete(self.desk.monitor.watch(self._tick))

    async def _choose(self) -> None:
        if self.admin.may():
            self.range = RANGES.get(str(self.choice.value), RANGES["live"])
            self.timeline.classes("busy")
            await self._draw()

    def _tick(self, sample: Sample) -> None:
        if self.admin.may() and self._drawn != self._due(sample):
            background_tasks.create_lazy(self._draw(), name=f"charts {self.admin.client.id}")

    def _due(self, sample: Sample) -> object:
        """Differs once there is something new to draw."""
        return self.range, int(sample.at.timestamp() // self.range.step_s)

    async def _draw(self) -> None:
        range, self._drawn = self.range, self._due(self.desk.monitor.now)
        steps = await self.ranges.steps(range)
        if range is self.range:  # nobody has chosen another one meanwhile
            self.timeline.classes(remove="busy")
            self.timeline.show(steps.middles, charts(self.say, steps.spans), day=range.key == "week")
            self.download.props["href"] = "/admin/history.csv?" + urlencode({"range": range.key})


def _names(say: Language) -> dict[str, str]:
    return {"live": say("{n} minutes", n=15), "hour": say("Hour"), "day": say("Day"), "week": say("Week")}
