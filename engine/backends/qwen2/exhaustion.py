"""When memory does not suffice for all at once: half of them is tried, and so on down to one alone.

Knows how a device says that its memory is out; nothing of what the work is.
"""

from collections.abc import Callable, Iterator
from typing import TypeVar

import torch

T = TypeVar("T")
R = TypeVar("R")


def is_exhausted(error: Exception) -> bool:
    """Whether memory ran out: CUDA and Python have a class for it, torch's CPU allocator has words."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "can't allocate memory" in str(error)


def in_parts(
    work: Callable[[list[T]], R], items: list[T], give_up: Callable[[T, Exception], None], device: torch.device
) -> Iterator[tuple[list[T], R]]:
    """Do the work on all items, in as few parts as the memory allows; yield each part with what came of it.

    The work must do no harm when it breaks off and is done again. `give_up` is told of an item for which alone the
    memory does not suffice. Other errors are raised.
    """
    try:
        done = work(items)
    except Exception as error:
        if not is_exhausted(error):
            raise
        failure = error.with_traceback(None)  # it would keep alive what lies in memory
    else:
        yield items, done
        return
    if device.type == "cuda":
        torch.cuda.empty_cache()
    middle = len(items) // 2
    if not middle:
        give_up(items[0], failure)
        return
    for part in (items[:middle], items[middle:]):
        yield from in_parts(work, part, give_up, device)
