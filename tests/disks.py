"""Small disks for tests of full ones."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk_at(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a disk of this size on an empty folder; skips the test for those who may not."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "qdesk-test", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a small disk can only be mounted by root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill_up(file: Path) -> None:
    """Leave not a byte free beside this file."""
    with file.open("wb", buffering=0) as ballast:
        try:
            while True:
                ballast.write(b"x" * 4096)
        except OSError:
            return
