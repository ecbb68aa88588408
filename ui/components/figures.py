"""Tiles with one large figure each. Sends only when something has changed; all texts are in the reader's language."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from nicegui.element import Element

Kind = Literal["first", "second", "third"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a tile's bar. `kind` is its colour in admin.css."""

    share: float  # of the whole bar, 0 to 1
    label: str = ""
    kind: Kind = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    label: str
    value: str
    unit: str = ""
    note: str = ""
    tone: Literal["", "good", "warn", "bad"] = ""
    wide: bool = False  # for values that are words
    parts: tuple[Part, ...] = ()


class Figures(Element, component="figures.js"):
    def __init__(self, tiles: Sequence[Tile] = ()) -> None:
        super().__init__()
        self._tiles: list[Tile] = []
        self._props["tiles"] = []
        self.show(tiles)

    def show(self, tiles: Sequence[Tile]) -> None:
        if list(tiles) != self._tiles:
            self._tiles = list(tiles)
            self._props["tiles"] = [asdict(tile) for tile in tiles]
            self.update()
