"""When work on several at once fails: half of them is tried, and so on down to one alone, which fails no other.

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
    """Do the work on all items, in as few parts as it succeeds with; yield each part with what came of it.

    The work must do no harm when it breaks off and is done again. `give_up` is told of an item with which alone it
    fails, and why; what it raises is raised.
    """
    try:
        done = work(items)
    except Exception as error:
        if is_exhausted(error):
            error.__traceback__ = None  # it would keep alive what lies in memory
            if device.type == "cuda":
                torch.cuda.empty_cache()
        if len(items) == 1:
            give_up(items[0], error)
            return
    else:
        yield items, done
        return
    middle = len(items) // 2
    for part in (items[:middle], items[middle:]):
        yield from in_parts(work, part, give_up, device)
