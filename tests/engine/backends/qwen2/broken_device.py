"""The server with the in-process engine, on a device that fails at prompts which begin with a certain character.

    with running_server(program=("-m", "tests.engine.backends.qwen2.broken_device"), backend="qwen2", ...) as server:

FAULTS strike that sequence from so many tokens of its answer on, however often it is tried; HANG is one step that does
not end before the process gets SIGUSR1; from BREAK on every call fails, as after a device-side assert. Stalls are told
after STALLED_AFTER_S.
"""

import runpy
import signal
import threading
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from engine import monitor
from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2
from engine.stalls import StallWatch

BREAK, HANG = "~", "&"
BUG, MEMORY = RuntimeError("a bug in a kernel"), torch.OutOfMemoryError("CUDA out of memory.")
NAN = ArithmeticError("the logits are no numbers")  # which is not raised: they are no numbers
FAULTS = {
    "^": (BUG, 0),
    "|": (BUG, 1),
    "#": (BUG, 20),
    "$": (MEMORY, 0),
    "%": (MEMORY, 20),
    "@": (NAN, 0),
    "`": (NAN, 20),
}
MARKS = {BREAK, HANG, *FAULTS}
STALLED_AFTER_S = 1.0


class Device:
    """What is wrong with it, and which sequences are concerned."""

    def __init__(self) -> None:
        self.hung, self.broken, self.released = False, False, threading.Event()
        self._prompts: dict[int, tuple[str, int, int]] = {}  # by slot: the character, its piece's start, the end

    def look_at(self, piece: Piece) -> str:
        """The character before this piece's sequence, if its time has come; else ""."""
        reading = piece.logits < len(piece.tokens)
        found = next((chr(token) for token in piece.tokens if reading and chr(token) in MARKS), "")
        mark, begun, end = self._prompts.get(piece.slot, ("", -1, 0))
        if found or piece.start <= begun:  # another sequence has the slot now
            mark, begun, end = found, piece.start, 0
        if reading:
            end = max(end, piece.end)
        self._prompts[piece.slot] = mark, begun, end
        said = max(0, piece.start + 1 - end)
        return mark if mark not in FAULTS or said >= FAULTS[mark][1] else ""

    def fail(self, marks: Sequence[str]) -> None:
        """Raise what is to be raised for one of them, or hang."""
        self.broken = self.broken or BREAK in marks
        if self.broken:
            raise RuntimeError("CUDA error: device-side assert triggered")
        if HANG in marks and not self.hung:
            self.hung = True
            self.released.wait()
        for error in (FAULTS[mark][0] for mark in marks if mark in FAULTS):
            if error is not NAN:
                raise error


def run() -> None:
    step, device = Qwen2.step, Device()

    def failing(self: Qwen2, pieces: Sequence[Piece], cache: KVCache) -> Tensor:
        marks = [device.look_at(piece) for piece in pieces]
        device.fail(marks)
        logits = step(self, pieces, cache)
        numbers = [mark not in FAULTS for piece, mark in zip(pieces, marks, strict=True) for _ in range(piece.logits)]
        return torch.where(torch.tensor(numbers)[:, None], logits, torch.nan) if numbers else logits

    Qwen2.step = failing  # type: ignore[method-assign]  # the device's fault, at its seam
    vars(monitor)["StallWatch"] = partial(StallWatch, STALLED_AFTER_S)
    signal.signal(signal.SIGUSR1, lambda *_: device.released.set())
    runpy.run_path("main.py", run_name="__main__")


if __name__ == "__main__":
    run()
