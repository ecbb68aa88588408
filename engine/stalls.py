"""A watch for stalls: requests run, and nothing about them moves.

A token is a sign of life, and so is a piece of a prompt that was read (a cold CPU may read a long prompt for minutes),
a request that starts, and one that ends. Pure policy with no clock of its own; tested with a simulated one.
"""

STALLED_AFTER_S = 20.0


class StallWatch:
    def __init__(self, after_s: float = STALLED_AFTER_S) -> None:
        self._after_s = after_s
        self._signs: object = None
        self._moved_at: float | None = None

    def look(self, now: float, running: int, signs: object) -> str:
        """The stall in one sentence, "" where there is none. `signs` is anything that differs once something moves."""
        if not running or self._moved_at is None or signs != self._signs:
            self._signs, self._moved_at = signs, now
        still_s = now - self._moved_at
        if still_s < self._after_s:
            return ""
        rounded = still_s // self._after_s * self._after_s  # the sentence shall not change every second
        return f"Requests run, and nothing has come from the engine for more than {rounded:.0f} s."
