"""What a model's weights come as, and the words for what can go wrong while they are fetched.

Knows folders, files and disks; nothing of where the weights come from and nothing of tensors.
"""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from engine.errors import NotReady
from engine.types import Progress, Report

CHUNK = 4 << 20  # bytes read at once
WAIT_S = 1.0  # how often a process that waits for another one's download says so
HEADROOM = 64 << 20  # bytes that stay free on the disk


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A verified model: a Hugging Face folder (config.json, tokenizer, *.safetensors), or one GGUF file in `folder`."""

    name: str  # what people and API clients see
    folder: Path
    gguf_file: str | None  # the file's name in `folder`; None for safetensors
    reason: str  # why this model runs, in one sentence
    identity: str  # changes whenever the weights or the tokenizer do: the key of the 4-bit cache


def unusable(sentence: str) -> NotReady:
    """The error that every way of getting weights raises; `sentence` says what to do."""
    return NotReady(sentence, code="engine_failed")


@contextmanager
def saving_to(folder: Path) -> Iterator[None]:
    """Make `folder`, and turn what the disk may say while something is saved there into a sentence."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        if trouble := disk_trouble(error, folder):
            raise trouble from error
        raise


@contextmanager
def alone(folder: Path, report: Report) -> Iterator[None]:
    """Let one process at a time work in `folder`. The lock ends with the process that holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "lock", timeout=WAIT_S)
    while not lock.is_locked:
        try:
            lock.acquire()
        except Timeout:
            report(Progress("waiting for another process that downloads the model"))
    try:
        yield
    finally:
        lock.release()


def disk_trouble(error: OSError, folder: Path) -> NotReady | None:
    """The sentence for an error of the disk under `folder`; None when it is another kind of error."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return disk_full(folder)
        case errno.EACCES | errno.EPERM | errno.EROFS | errno.ENOTDIR | errno.EEXIST:
            return unusable(
                f"Models cannot be saved in {folder} ({os.strerror(error.errno)}); "
                "let this user write there, or set QDESK_MODELS_DIR to another folder."
            )
    return None


def disk_full(folder: Path) -> NotReady:
    return unusable(
        f"The disk of {folder} is full; free some space there and start again, or set QDESK_MODELS_DIR "
        "(and HF_HOME for models of a hub) to a folder on another disk."
    )


def check_space(folder: Path, needed: int) -> None:
    """Refuse before the work starts when `needed` bytes do not fit under the existing `folder`."""
    free = shutil.disk_usage(folder).free
    if free < needed + HEADROOM:
        raise unusable(
            f"The model needs {gigabytes(needed + HEADROOM)} on the disk of {folder}, which has "
            f"{gigabytes(free)} free; free some space, or set QDESK_MODELS_DIR (and HF_HOME for models of a hub) "
            "to a folder on another disk."
        )


def gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def digest_of(path: Path, algorithm: "hashlib._Hash", report: Report) -> str:
    """Feed the file to `algorithm` and return the hexadecimal digest, reporting the bytes read."""
    size = path.stat().st_size
    with path.open("rb") as file:
        done = 0
        while chunk := file.read(CHUNK):
            algorithm.update(chunk)
            done += len(chunk)
            report(Progress("checking", done, size, "bytes"))
    return algorithm.hexdigest()


class Verified:
    """Remembers which files had the right digest, so that a start does not read gigabytes to learn it again.

    A file whose size or time of change is another one counts as not verified.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def holds(self, path: Path, digest: str) -> bool:
        stamp = self.folder / digest
        return path.is_file() and stamp.is_file() and stamp.read_text() == _state(path)

    def add(self, path: Path, digest: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / digest).write_text(_state(path))


def _state(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_size} bytes, changed at {stat.st_mtime_ns} ns"
