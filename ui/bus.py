"""What several processes of one Qdesk tell each other about what they keep in memory. One process tells nobody.

    desk.bus.on("list", self._list_changed)     called with the text that another process tells of this topic
    desk.bus.tell("list", user_id)              tells the others, never oneself

What is told may be lost while the database is away. "all" is heard when that may have been: whatever can be read from
the store is read again then. Knows nothing of databases; lives on the event loop.
"""

from collections.abc import Callable

from loguru import logger

ALL = "all"


class Bus:
    def __init__(self, send: Callable[[str, str], None] | None = None) -> None:
        """`send` takes a topic and a text to the other processes; None: there are none."""
        self._send = send
        self._listeners: dict[str, list[Callable[[str], object]]] = {}

    def on(self, topic: str, listener: Callable[[str], object]) -> None:
        self._listeners.setdefault(topic, []).append(listener)

    def tell(self, topic: str, text: str = "") -> None:
        if self._send is None:
            return
        try:
            self._send(topic, text)
        except Exception as error:  # the store is closed; whoever told has done its own part already
            logger.warning("the other processes are not told of {}: {!r}", topic, error)

    def hear(self, topic: str, text: str) -> None:
        """Somebody tells this. What fails in one listener hurts no other."""
        for listener in self._listeners.get(topic, []):
            try:
                listener(text)
            except Exception as error:
                logger.opt(exception=error).error("what another process told of {} was not taken in", topic)
