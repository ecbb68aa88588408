"""What happens now: queue, requests, speed, machine, model. Follows the monitor, once a second."""

from engine.monitor import Sample
from ui.components.figures import Figures
from ui.components.queue_chart import QueueChart
from ui.pages.admin.administrator import Administrator
from ui.pages.admin.processes import Processes
from ui.pages.admin.requests import Requests
from ui.pages.admin.tiles import last_minutes, machine, now
from ui.pages.admin.tiles_model import model
from ui.theme import heading


class Overview:
    def __init__(self, admin: Administrator) -> None:
        self.admin, self.desk, self.say = admin, admin.desk, admin.say

    async def build(self) -> None:
        say, monitor = self.say, self.desk.monitor
        self.now = Figures()
        self.chart = QueueChart(say, monitor.samples)
        self.processes = Processes(self.admin)
        self.requests = Requests(self.admin)
        heading(say("Last {n} minutes", n=15), 2)
        self.figures = Figures()
        heading(say("Machine"), 2)
        self.machine = Figures()
        heading(say("Model"), 2)
        self.model = Figures()
        await self.requests.learn_names()
        self._show(monitor.now)
        self.admin.client.on_delete(monitor.watch(self._tick))

    def _tick(self, sample: Sample) -> None:
        if self.admin.may():
            self.chart.push(sample)
            self._show(sample)

    def _show(self, sample: Sample) -> None:
        say, service = self.say, self.desk.service
        self.now.show(now(say, self.processes.together(sample), service))
        self.processes.show()
        self.requests.show()
        self.figures.show(last_minutes(say, self.desk.monitor.figures()))
        self.machine.show(machine(say, sample.hardware, service.backend))
        self.model.show(model(say, service.backend))
