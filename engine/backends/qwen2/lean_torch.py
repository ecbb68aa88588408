"""torch, imported without the parts that only tracing and compiling use: a fifth to a quarter of its import.

`import torch` also loads torch.export, and Python versions of its operators for tensors that have no numbers
(torch._meta_registrations). The forward pass runs real tensors and compiles nothing. What needs them nevertheless, as
transformers does when it reads a model, calls `complete` first.
"""

import importlib
import os
import sys
import threading
from types import ModuleType

SPINS = "2000"  # of OpenMP's threads that wait for each other; the usual 300,000 keep the event loop off its processor
UNUSED = ("torch._meta_registrations", "torch.export")

_importing = threading.Lock()


def import_torch() -> ModuleType:
    """Return torch; lean if nothing has imported it before."""
    with _importing:
        if "torch" not in sys.modules:
            os.environ.setdefault("GOMP_SPINCOUNT", SPINS)  # read once, when torch loads its libraries
            sys.modules.update({name: ModuleType(name) for name in UNUSED})
            try:
                import torch
            finally:
                for name in UNUSED:
                    del sys.modules[name]
            del torch.export  # the empty one: whoever asks for it imports it
    return sys.modules["torch"]


def complete() -> None:
    """Load what was left out."""
    for name in UNUSED:
        importlib.import_module(name)


def compute_alone() -> None:
    """Let this thread compute without others.

    Where OpenMP has more threads than there are processors, none of them spins while it waits for the others: each of a
    step's hundreds of products then waits for the system to wake a thread (docs/performance.md).
    """
    import torch

    torch.set_num_threads(1)
    torch.get_num_threads()  # by which this thread takes the number for itself, whatever others set later
