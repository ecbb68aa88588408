"""One sampler for everybody who watches: queue, speed and hardware once a second, kept for fifteen minutes."""

from engine.service import ChatService


class Monitor:
    def __init__(self, service: ChatService) -> None:
        self.service = service
