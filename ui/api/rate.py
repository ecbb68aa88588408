"""How often one account may call the API, whatever it asks. In memory, in every process; the fixed key is free."""

import time

from limits import RateLimitItem, parse
from limits.strategies import MovingWindowRateLimiter

from ui.api.errors import ApiError
from ui.auth import Caller
from ui.bus import Bus
from ui.windows import SteadyStorage

TOPIC = "called"  # on the bus


class RateLimit:
    def __init__(self, limit: str, bus: Bus) -> None:
        """`limit` as in QDESK_API_RATE_LIMIT: "600/minute"; empty is none."""
        self._bus = bus
        bus.on(TOPIC, self._hear)
        self._limit: RateLimitItem | None = parse(limit) if limit else None
        self._limiter = MovingWindowRateLimiter(SteadyStorage())

    def take(self, caller: Caller) -> None:
        """Count a call. Raises ApiError 429 `rate_limit` with the time after which there is room again."""
        if self._limit is None or caller.person is None:
            return
        if self._limiter.hit(self._limit, caller.person):
            self._bus.tell(TOPIC, caller.person)
            return
        room_at = self._limiter.get_window_stats(self._limit, caller.person).reset_time
        limit = f"{self._limit.amount} calls in {self._limit.multiples} {self._limit.GRANULARITY.name}"
        raise ApiError(
            429,
            f"An account may make {limit} here; wait a little.",
            type="rate_limit_error",
            code="rate_limit",
            retry_after_s=max(1.0, room_at - time.monotonic()),
        )

    def _hear(self, person: str) -> None:
        """Somebody has called another process."""
        if self._limit is not None:
            self._limiter.hit(self._limit, person)
