"""Which processes share this database, and how many of all requests run and wait in each. Nothing where there is one.

The requests on the page are everybody's; its figures are of the process that has made it: its speed, its machine.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from nicegui import ui

from engine.monitor import Sample
from engine.shared_places import SharedPlaces
from ui.components.figures import Figures, Tile
from ui.i18n import Language
from ui.pages.admin.administrator import Administrator
from ui.theme import heading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from storage.joining import Member


class Processes:
    def __init__(self, admin: Administrator) -> None:
        self._say, self._cluster = admin.say, admin.desk.store.cluster
        places = admin.desk.service.places
        self._places = places if isinstance(places, SharedPlaces) else None
        with ui.element("section") as self._section:
            heading(self._say("Processes"), 2)
            about = self._say(
                "Places and requests are those of all of them. Speed, machine and model below are those of one."
            )
            ui.label(about).classes("soft")
            self._figures = Figures()
        self.show()

    def show(self) -> None:
        cluster, places = self._cluster, self._places
        self._section.visible = self._several
        if cluster and places:
            self._figures.show(tiles(self._say, cluster.members, places.by_process(), cluster.process))

    def together(self, sample: Sample) -> Sample:
        """The sample with what runs and waits in all processes: the limits beside it are for all of them."""
        if self._places is None or not self._several:
            return sample
        gate = self._places.gate
        return replace(sample, running=len(gate.running), waiting=gate.waiting)

    @property
    def _several(self) -> bool:
        return self._cluster is not None and len(self._cluster.members) > 1


def tiles(
    say: Language, members: "Sequence[Member]", by_process: "Mapping[str, tuple[int, int]]", shown: str
) -> list[Tile]:
    """`by_process` is how many run and wait; `shown` is the process that the page is about."""
    return [
        Tile(
            label=say("{name} (this page)", name=member.name) if member.id == shown else member.name,
            value=say.number(by_process.get(member.id, (0, 0))[0]),
            unit=say("running"),
            note=say("{n} waiting", n=say.number(by_process.get(member.id, (0, 0))[1])),
        )
        for member in members
    ]
