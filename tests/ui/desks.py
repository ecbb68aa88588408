"""What main builds, without a server around it: for tests of what the faces do with service and store."""

from engine.monitor import Monitor
from engine.service import ChatService
from engine.settings import Settings
from storage import Store
from tests.engine.kit import UnrulyBackend
from ui.auth import Auth
from ui.desk import Desk


def started_again(settings: Settings, store: Store) -> Desk:
    """As after a start on this store, with the model there."""
    service = ChatService(settings, UnrulyBackend(), store.exchanges)
    service.intake.loaded()
    return Desk(settings, service, store, Auth(store, settings), Monitor(service))
