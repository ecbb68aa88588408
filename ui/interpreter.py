"""How this process's Python is set, so that one thread's work does not hold up all pages.

Knows the garbage collector and the interpreter's lock. With two hundred pages open, looking for garbage among
everything stops the process for half a second and more (docs/performance.md). So what has been looked through once is
put aside. What nobody holds any more is freed there as everywhere, at once; only circles stay. ui/page_ends.py takes
those of pages apart; for all others everything is looked through again when there is twice as much as the last time.
"""

import gc
import math
import sys
import time
from typing import Any

OLD_EVERY_S = 60.0  # at most so often among what came since the last time; what was made lately as usual
NEVER = 1 << 30
SWITCH_S = 0.0005  # how long a thread that computes may let another one wait that has come back from its input


def settle() -> None:
    """Take what is there by now for lasting, and turn the garbage collector on, as this server needs it."""
    gc.freeze()
    gc.enable()
    gc.callbacks.append(SeldomAmongEverything())
    sys.setswitchinterval(SWITCH_S)


class SeldomAmongEverything:
    """Called by Python before and after it looks for garbage among the young, the middle-aged and the old."""

    def __init__(self) -> None:
        self._usual, self._again_at = gc.get_threshold(), 0.0
        self._enough = 2 * gc.get_freeze_count()  # objects put aside at which all of them are looked through

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start" or info["generation"] == 0:
            return
        young, middle, old = self._usual
        if info["generation"] == 2:
            everything = gc.get_freeze_count() == 0
            gc.freeze()
            if everything:
                self._enough = 2 * gc.get_freeze_count()
            self._again_at = time.monotonic() + OLD_EVERY_S
            gc.set_threshold(young, middle, NEVER)
        elif time.monotonic() >= self._again_at:
            if gc.get_freeze_count() > self._enough:
                gc.unfreeze()
            gc.set_threshold(young, middle, old)
            self._again_at = math.inf  # until Python has looked
