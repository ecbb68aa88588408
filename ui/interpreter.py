"""How this process's Python is set, so that one thread's work does not hold up all pages.

Knows the garbage collector and the interpreter's lock. With two hundred pages open, looking for garbage among
everything stops the process for half a second, and a crowd of pages that come and go makes Python do so every six
seconds (docs/performance.md).
"""

import gc
import sys
import time
from typing import Any

OLD_EVERY_S = 120.0  # at most so often among everything; what was made lately is looked through as usual
NEVER = 1 << 30
SWITCH_S = 0.0005  # how long a thread that computes may let another one wait that has come back from its input


def settle() -> None:
    """Take what is there by now for lasting, and turn the garbage collector on, as this server needs it."""
    gc.freeze()
    gc.enable()
    gc.callbacks.append(SeldomAmongEverything())
    sys.setswitchinterval(SWITCH_S)


class SeldomAmongEverything:
    """Called by Python before and after it looks for garbage: the third generation then has a while to wait."""

    def __init__(self) -> None:
        self._usual, self._again_at = gc.get_threshold(), 0.0

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start" or info["generation"] == 0:
            return
        young, middle, old = self._usual
        if info["generation"] == 2:
            self._again_at = time.monotonic() + OLD_EVERY_S
            gc.set_threshold(young, middle, NEVER)
        elif time.monotonic() >= self._again_at:
            gc.set_threshold(young, middle, old)
