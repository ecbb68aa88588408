"""Small charts over one time axis. The whole picture is sent whenever a step of time has passed, not every second."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Literal

from nicegui.element import Element

from ui.i18n import Language

Tone = Literal["first", "second", "third", "fourth", "fifth", "sixth", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Series:
    """One value a step; None where nothing is known."""

    label: str
    tone: Tone
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    title: str
    unit: str = ""
    kind: Literal["lines", "stack"] = "lines"
    series: Sequence[Series]
    top: float | None = None  # of the scale; None = as the values need it


class Timeline(Element, component="timeline.js"):
    def __init__(self, say: Language) -> None:
        super().__init__()
        texts = {"nothing": say("Nothing in this time."), "language": say.tag}
        self._props.update(times=[], charts=[], day=False, texts=texts)

    def show(self, times: Sequence[datetime], charts: Sequence[Chart], *, day: bool) -> None:
        """`times` are the middles of the steps; `day`: the axis needs dates."""
        self._props["times"] = [round(time.timestamp() * 1000) for time in times]
        self._props["charts"] = [asdict(chart) for chart in charts]
        self._props["day"] = day
        self.update()
