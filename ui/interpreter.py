"""How this process's Python is set, so that one thread's work does not hold up all pages.

Knows the garbage collector and the interpreter's lock. With two hundred pages open, looking for garbage among
everything stops the process for half a second and more (docs/performance.md). So what has been looked through once is
put aside. What nobody holds any more is freed there as everywhere, at once; only circles stay. ui/page_ends.py takes
those of pages apart; for all others everything is looked through again in a lull, or when there is three times as much.
"""

import gc
import math
import sys
import time
from typing import Any

OLD_EVERY_S = 60.0  # at most so often among what came since the last time; what was made lately as usual
MORE, MORE_IN_A_LULL, LULL_S = 3.0, 1.25, 5.0  # times as much as last time; the young were not looked through so long
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
        self._usual, self._again_at, self._called_at = gc.get_threshold(), 0.0, time.monotonic()
        self._lasting = gc.get_freeze_count()  # objects that were left by the last look among everything

    def __call__(self, phase: str, info: dict[str, Any]) -> None:
        if phase == "start" or info["generation"] == 0:
            return
        now, (young, middle, old) = time.monotonic(), self._usual
        lull, self._called_at = now - self._called_at >= LULL_S, now
        if info["generation"] == 2:
            everything = gc.get_freeze_count() == 0
            gc.freeze()
            if everything:
                self._lasting = gc.get_freeze_count()
            self._again_at = now + OLD_EVERY_S
            gc.set_threshold(young, middle, NEVER)
        elif now >= self._again_at:
            if gc.get_freeze_count() > (MORE_IN_A_LULL if lull else MORE) * self._lasting:
                gc.unfreeze()
            gc.set_threshold(young, middle, old)
            self._again_at = math.inf  # until Python has looked
