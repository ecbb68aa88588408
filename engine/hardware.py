"""What the machine has and is doing: GPUs through NVML, processor and memory through psutil.

A reading never raises: what cannot be read is None, and why there is no GPU is kept as a sentence. It takes about a
millisecond, and what the driver needs for each GPU; a driver in trouble may take longer, so read from a thread.
How a GPU's memory divides into weights and cache is known to the backend, not here.
"""

import math
import os
import platform
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil
import pynvml

RETRY_S = 60.0  # between two attempts to reach a driver that is not there

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gpu:
    """Memory in bytes. None where the device or the driver does not tell."""

    name: str
    memory_total: int
    memory_used: int  # by everybody
    memory_own: int | None  # by this process
    utilization: float | None  # share of the time in which a kernel ran, 0 to 1
    temperature_c: float | None
    power_w: float | None


@dataclass(frozen=True, slots=True)
class Hardware:
    """One reading. Memory in bytes."""

    gpus: tuple[Gpu, ...]
    cpu_name: str
    cpu_percent: float  # of all cores together, since the reading before; 0 in the first
    memory_total: int
    memory_used: int  # what is not available to programs
    process_memory: int  # resident memory of this process
    gpu_trouble: str = ""  # why there is no GPU, or why one is missing, in one sentence


def read() -> Hardware:
    """Take a reading. Never raises; safe from any thread."""
    return _reader.read()


class _Reader:
    """Keeps NVML open and the last processor times from one reading to the next."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = psutil.Process()
        self._cpu_name = _cpu_name()
        self._cpu_times: tuple[float, float] | None = None
        self._devices: list[Any] = []  # NVML's handles
        self._trouble = ""
        self._open_at_s = -math.inf  # when to open NVML, at first or anew

    def read(self) -> Hardware:
        with self._lock:
            gpus, trouble = self._gpus()
            memory = psutil.virtual_memory()
            return Hardware(
                gpus=gpus,
                cpu_name=self._cpu_name,
                cpu_percent=self._cpu_percent(),
                memory_total=memory.total,
                memory_used=memory.total - memory.available,
                process_memory=self._process.memory_info().rss,
                gpu_trouble=trouble,
            )

    def _cpu_percent(self) -> float:
        times = psutil.cpu_times()
        total = sum(times) - getattr(times, "guest", 0) - getattr(times, "guest_nice", 0)  # these count as user
        idle = times.idle + getattr(times, "iowait", 0)
        total_before, idle_before = self._cpu_times or (total, idle)
        self._cpu_times = total, idle
        passed = total - total_before
        return min(100.0, max(0.0, 100 * (1 - (idle - idle_before) / passed))) if passed > 0 else 0.0

    def _gpus(self) -> tuple[tuple[Gpu, ...], str]:
        if time.monotonic() >= self._open_at_s:
            self._open()
        gpus: list[Gpu] = []
        trouble = self._trouble
        for number, device in enumerate(self._devices):
            try:
                gpus.append(_read_gpu(device))
            except pynvml.NVMLError as error:
                trouble = f"GPU {number} cannot be read any more ({error}); see `nvidia-smi` and the driver's log."
                self._open_at_s = min(self._open_at_s, time.monotonic() + RETRY_S)  # the handle stays dead
        return tuple(gpus), trouble

    def _open(self) -> None:
        self._close()
        self._open_at_s = time.monotonic() + RETRY_S
        try:
            pynvml.nvmlInit()
            self._devices = [pynvml.nvmlDeviceGetHandleByIndex(n) for n in range(pynvml.nvmlDeviceGetCount())]
        except pynvml.NVMLError_LibraryNotFound:
            self._trouble = "There is no NVIDIA driver on this machine."
        except (pynvml.NVMLError, OSError) as error:
            self._trouble = f"The NVIDIA driver does not work ({error}); see `nvidia-smi`."
        else:
            self._open_at_s = math.inf
            self._trouble = "" if self._devices else "The NVIDIA driver sees no GPU."

    def _close(self) -> None:
        self._devices = []
        with suppress(pynvml.NVMLError):  # it was not open
            pynvml.nvmlShutdown()


def has_nvidia_driver() -> bool:
    """Whether NVIDIA's library is there, without which nothing of theirs computes. Asking takes no time."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        return False
    except (pynvml.NVMLError, OSError):
        return True
    pynvml.nvmlShutdown()
    return True


def physical_cores(processors: Path = Path("/sys/devices/system/cpu")) -> int:
    """Cores that this process may use, without hyper-threads, which only share them."""
    if not hasattr(os, "sched_getaffinity"):
        return psutil.cpu_count(logical=False) or os.cpu_count() or 1
    allowed = os.sched_getaffinity(0)
    try:
        return len({(processors / f"cpu{number}/topology/thread_siblings_list").read_text() for number in allowed})
    except OSError:  # not Linux, or a container that does not show it
        return min(len(allowed), psutil.cpu_count(logical=False) or len(allowed))


def _read_gpu(device: Any) -> Gpu:
    """Raises NVMLError when the device is lost."""
    memory = _if_told(lambda: pynvml.nvmlDeviceGetMemoryInfo(device))
    utilization = _if_told(lambda: pynvml.nvmlDeviceGetUtilizationRates(device).gpu)
    power_mw = _if_told(lambda: pynvml.nvmlDeviceGetPowerUsage(device))
    processes = _if_told(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(device)) or []
    return Gpu(
        name=str(pynvml.nvmlDeviceGetName(device)),
        memory_total=memory.total if memory else 0,  # a GPU that shares the processor's memory has none of its own
        memory_used=memory.used if memory else 0,
        memory_own=next((process.usedGpuMemory for process in processes if process.pid == os.getpid()), None),
        utilization=None if utilization is None else utilization / 100,
        temperature_c=_if_told(lambda: pynvml.nvmlDeviceGetTemperature(device, pynvml.NVML_TEMPERATURE_GPU)),
        power_w=None if power_mw is None else power_mw / 1000,
    )


def _if_told(ask: Callable[[], T]) -> T | None:
    """The answer, or None where this device, driver or user has none."""
    try:
        return ask()
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_NoPermission, pynvml.NVMLError_FunctionNotFound):
        return None


def _cpu_name() -> str:
    """The processor as its maker calls it, where the system tells, else the architecture."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


_reader = _Reader()
