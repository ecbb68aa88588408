"""The server with the in-process engine, whose device fails for good from the first prompt on that says BREAK.

    with running_server(program=("-m", "tests.engine.backends.qwen2.broken_device"), backend="qwen2", ...) as server:

Then every call of the model raises what CUDA does after a device-side assert.
"""

import runpy
from collections.abc import Sequence

from torch import Tensor

from engine.backends.qwen2.attention import Piece
from engine.backends.qwen2.kvcache import KVCache
from engine.backends.qwen2.model import Qwen2

BREAK = "~~~~"


def run() -> None:
    step, broken = Qwen2.step, False

    def breaking(self: Qwen2, pieces: Sequence[Piece], cache: KVCache) -> Tensor:
        nonlocal broken
        broken = broken or any(ord("~") in piece.tokens and piece.logits < len(piece.tokens) for piece in pieces)
        if broken:
            raise RuntimeError("CUDA error: device-side assert triggered")
        return step(self, pieces, cache)

    Qwen2.step = breaking  # type: ignore[method-assign]  # the device's fault, at its seam
    runpy.run_path("main.py", run_name="__main__")


if __name__ == "__main__":
    run()
