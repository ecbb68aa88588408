"""Progress for whoever watches the console: a bar on a terminal, else a log line at each tenth.

Knows nothing of what is making progress.
"""

import sys
import threading
import time
from typing import TextIO

from loguru import logger

from engine.types import Progress, Report

WIDTH = 30  # characters of the bar
REDRAW_S = 0.1
STEP = 10  # per cent between two log lines


def console(report: Report | None = None, stream: TextIO | None = None) -> Report:
    """Return a Report that shows progress on `stream` (standard error) and then passes it on. Safe from any thread."""
    stream = stream or sys.stderr
    show = _Bar(stream) if stream.isatty() else _Lines()
    lock = threading.Lock()

    def both(progress: Progress) -> None:
        with lock:
            show(progress)
        if report:
            report(progress)

    return both


class _Bar:
    """One line, drawn over until its stage is done."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._stage = ""
        self._open = False  # the line is not ended yet
        self._began_s = self._drawn_s = 0.0
        self._began_at = 0  # where the stage began: a download that goes on has a head start

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if progress.stage != self._stage:
            self._end()
            self._open = True
            self._stage, self._began_s, self._began_at = progress.stage, now, progress.done
        finished = progress.done >= progress.total > 0
        if self._open and (finished or now - self._drawn_s >= REDRAW_S):
            self._drawn_s = now
            self._stream.write(f"\r\x1b[K{self._line(progress, now - self._began_s)}")
            self._stream.flush()
        if finished:
            self._end()

    def _line(self, progress: Progress, seconds: float) -> str:
        if not progress.total:
            return f"{progress.stage} ..."
        share = min(progress.done / progress.total, 1.0)
        bar = ("#" * int(share * WIDTH)).ljust(WIDTH, ".")
        line = f"{progress.stage} [{bar}] {share:4.0%}"
        if progress.unit == "bytes":
            speed = (progress.done - self._began_at) / seconds if seconds > 0 else 0.0
            line += f"  {progress.done / 1e6:.0f} of {progress.total / 1e6:.0f} MB, {speed / 1e6:.1f} MB/s"
        return line

    def _end(self) -> None:
        if self._open:
            self._stream.write("\n")
            self._open = False


class _Lines:
    def __init__(self) -> None:
        self._last: tuple[str, int] | None = None

    def __call__(self, progress: Progress) -> None:
        percent = 100 * progress.done // progress.total // STEP * STEP if progress.total else 0
        if (progress.stage, percent) != self._last:
            self._last = progress.stage, percent
            logger.info("{}{}", progress.stage, f": {percent} %" if progress.total else "")
