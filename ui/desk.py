"""What every face is given: one object with the parts that main built. Faces keep no state of their own beside it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engine.monitor import Monitor
from engine.service import ChatService
from engine.settings import Settings
from ui.auth import Auth
from ui.banner import Board
from ui.bus import Bus

if TYPE_CHECKING:
    from storage import Store


@dataclass(frozen=True, slots=True)
class Desk:
    settings: Settings
    service: ChatService
    store: "Store"
    auth: Auth
    monitor: Monitor
    bus: Bus = field(default_factory=Bus)
    board: Board = field(default_factory=Board)
