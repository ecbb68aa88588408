"""Readings of the machine. The GPUs are a stub of the driver's library, so that the real bindings run."""

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from engine import hardware

Read = Callable[[str], list[dict[str, object]]]
READ_TWICE = """
import dataclasses, json
from engine import hardware
print(json.dumps([dataclasses.asdict(hardware.read()) for _ in range(2)]))
"""


def test_memory_and_processor_are_this_machines() -> None:
    reading = hardware.read()
    assert reading.cpu_name
    assert reading.memory_total == psutil.virtual_memory().total
    assert 0 < reading.process_memory < reading.memory_used < reading.memory_total
    sum(range(10**6))  # so that some time passes for the processor
    assert 0 <= hardware.read().cpu_percent <= 100


def test_whether_there_is_a_driver_is_known_at_once() -> None:
    assert hardware.has_nvidia_driver() == ("no NVIDIA driver" not in hardware.read().gpu_trouble)


def test_readings_come_from_any_thread() -> None:
    readings: list[hardware.Hardware] = []
    threads = [threading.Thread(target=lambda: readings.append(hardware.read())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({reading.memory_total for reading in readings}) == 1
    assert len(readings) == 8


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stub library in it."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("the stub of the NVIDIA driver needs a C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    source = Path(__file__).with_name("nvml_stub.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", source], check=True)
    return folder


@pytest.fixture
def read(stub: Path) -> Read:
    """Take two readings in a process that finds the stub where the driver would be."""

    def run(trouble: str) -> list[dict[str, object]]:
        environment = os.environ | {"LD_LIBRARY_PATH": str(stub), "STUB": trouble}
        found: list[dict[str, object]] = json.loads(
            subprocess.check_output([sys.executable, "-c", READ_TWICE], env=environment)
        )
        return found

    return run


def test_gpus_are_read_with_all_their_sensors(read: Read) -> None:
    for reading in read(""):
        assert reading["gpu_trouble"] == ""
        assert reading["gpus"] == [
            {
                "name": "Stub 24 GB",
                "memory_total": 24_000_000_000,
                "memory_used": 6_000_000_000,
                "memory_own": 5_000_000_000,
                "utilization": 0.42,
                "temperature_c": 61,
                "power_w": 187.5,
            },
            {
                "name": "Stub 8 GB",
                "memory_total": 8_000_000_000,
                "memory_used": 6_000_000_000,
                "memory_own": None,
                "utilization": 0.42,
                "temperature_c": 61,
                "power_w": 187.5,
            },
        ]


def test_a_sensor_that_is_not_there_is_none_and_the_others_are_read(read: Read) -> None:
    gpus = read("few sensors")[0]["gpus"]
    assert isinstance(gpus, list)
    assert [(gpu["temperature_c"], gpu["power_w"], gpu["utilization"]) for gpu in gpus] == [(None, None, 0.42)] * 2


def test_a_gpu_that_is_lost_is_left_out_with_the_reason(read: Read) -> None:
    before, after = read("second gpu is lost")
    assert isinstance(before["gpus"], list)
    assert isinstance(after["gpus"], list)
    assert [gpu["name"] for gpu in before["gpus"]] == ["Stub 24 GB", "Stub 8 GB"]
    assert [gpu["name"] for gpu in after["gpus"]] == ["Stub 24 GB"]
    assert after["gpu_trouble"] == (
        "GPU 1 cannot be read any more (GPU is lost); see `nvidia-smi` and the driver's log."
    )


def test_no_gpu_and_a_driver_that_is_not_loaded_are_sentences(read: Read) -> None:
    for trouble, sentence in [
        ("no gpu", "The NVIDIA driver sees no GPU."),
        ("driver not loaded", "The NVIDIA driver does not work (Driver Not Loaded); see `nvidia-smi`."),
    ]:
        for reading in read(trouble):
            assert (reading["gpus"], reading["gpu_trouble"]) == ([], sentence)


def test_a_library_that_is_no_library_is_as_good_as_none(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("not a library")
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    reading = json.loads(subprocess.check_output([sys.executable, "-c", READ_TWICE], env=environment))[0]
    assert reading["gpus"] == []
    assert reading["gpu_trouble"]


@pytest.mark.parametrize(
    ("allowed", "siblings", "cores"),
    [
        (range(2), lambda number: number, 2),  # no hyper-threads
        (range(4), lambda number: number // 2, 2),  # two threads a core, numbered in a row
        (range(128), lambda number: number % 64, 64),  # numbered core by core first
        ([3], lambda number: number // 2, 1),
        ([1, 2, 65], lambda number: number % 64, 2),  # of two cores one has both threads allowed
    ],
)
def test_cores_are_counted_once_and_those_of_others_not_at_all(
    allowed: Collection[int],
    siblings: Callable[[int], int],
    cores: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(128):
        topology = tmp_path / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"of core {siblings(number)}\n")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(allowed))
    assert hardware.physical_cores(tmp_path) == cores


def test_a_process_that_is_bound_to_one_processor_has_one_core(tmp_path: Path) -> None:
    def bound() -> tuple[int, int]:
        os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])  # of this thread alone
        return hardware.physical_cores(), hardware.physical_cores(tmp_path)  # also where nobody tells which core it is

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(bound).result() == (1, 1)
