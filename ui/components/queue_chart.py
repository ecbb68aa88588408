"""Requests running and waiting over the last minutes. After the first picture only the newest point is sent."""

from collections.abc import Iterable

from nicegui.element import Element

from engine.monitor import WINDOW_S, Sample
from ui.i18n import Language

Point = tuple[int, int, int]  # milliseconds since the epoch, running, waiting


class QueueChart(Element, component="queue_chart.js"):
    def __init__(self, say: Language, samples: Iterable[Sample]) -> None:
        super().__init__()
        self._props["points"] = [_point(sample) for sample in samples]
        self._props["seconds"] = WINDOW_S
        self._props["texts"] = {
            "title": say("Requests in the last {n} minutes", n=WINDOW_S // 60),
            "running": say("running"),
            "waiting": say("waiting"),
            "summary": say("{running} running, {waiting} waiting"),
            "start": say("{n} min ago", n=WINDOW_S // 60),
            "now": say("now"),
        }

    def push(self, sample: Sample) -> None:
        self.run_method("push", _point(sample))


def _point(sample: Sample) -> Point:
    return round(sample.at.timestamp() * 1000), sample.running, sample.waiting
