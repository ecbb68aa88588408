"""A model of a hub: looked up, downloaded into the hub's own cache, and checked against the digests that the hub gives.

HF_ENDPOINT, HF_HOME, HF_TOKEN, HF_HUB_OFFLINE and the cache work as in every other program that uses huggingface_hub. A
model that is in the cache is used as it is and needs no hub. Only safetensors, configuration and tokenizer files are
fetched; nothing that could hold a program. Knows nothing of what the setting says and of tensors.
"""

import hashlib
import json
import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TypeVar

import httpx2  # what huggingface_hub speaks HTTP with
from huggingface_hub import HfApi, constants, hf_hub_download, hf_hub_url, snapshot_download
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)

from engine.backends.qwen2 import folder
from engine.backends.qwen2.download import download
from engine.backends.qwen2.source import Verified, alone, check_space, digest_of, disk_trouble, saving_to, unusable
from engine.errors import NotReady
from engine.types import Progress, Report

ANSWER_S = 5.0  # the hub must answer within this time, name look-up included
WANTED = ["*.safetensors", "*.json", "merges.txt", "*.jinja"]  # in the top folder alone

T = TypeVar("T")


class NotGiven(NotReady):
    """The hub does not give the model now. `cause` is the reason as a clause without its full stop."""

    def __init__(self, cause: str, remedy: str = "check the network and HF_ENDPOINT and start again") -> None:
        super().__init__(
            f"{cause}; {remedy}, or set QDESK_MODEL to a model's folder or to `packaged`.", code="engine_failed"
        )
        self.cause = cause


@dataclass(frozen=True, slots=True)
class File:
    name: str
    size: int  # bytes
    sha256: str | None  # of the content; large files have it
    git_sha1: str | None  # of the content as a git blob; small files have it

    @property
    def digest(self) -> str | None:
        return self.sha256 or self.git_sha1


def cached(name: str, models_dir: Path, report: Report) -> Path | None:
    """Return the folder of a model that is in the cache as a whole, without asking the hub; else None."""
    try:
        kept = snapshot_download(  # the operator names the model, and each file is checked by its digest  # nosec B615
            name, local_files_only=True, allow_patterns=WANTED, ignore_patterns=["*/*"]
        )
        found = Path(kept)
    except LocalEntryNotFoundError:
        return None
    except HFValidationError as error:
        raise _no_model(name) from error
    if not folder.is_complete(found):
        return None
    verified = Verified(models_dir / "verified")
    right = [_is_right(file, _named_digest(file), verified, report) for file in found.iterdir() if file.is_file()]
    return found if all(right) else None


def fetch(name: str, models_dir: Path, report: Report, answer_s: float = ANSWER_S) -> Path:
    """Download the model and return its folder. Raises NotGiven, or NotReady where no other model would help.

    What is complete stays, and a large file goes on where it broke, also at the next start.
    """
    cache = Path(constants.HF_HUB_CACHE)
    try:
        commit, files = _within(answer_s, lambda: _ask(name, answer_s))
        with saving_to(cache), alone(cache / ".locks" / _cache_name(name), report):
            found = _Download(name, commit, Verified(models_dir / "verified"), report).all(files)
            hf_hub_download(name, "config.json")  # notes in the cache that this commit is the newest  # nosec B615
            return found
    except NotReady:
        raise
    except TimeoutError as error:
        raise NotGiven(f"No model hub answered within {answer_s:g} s") from error
    except (OSError, httpx2.HTTPError, HFValidationError) as error:
        raise _said(error, name) from error


def _ask(name: str, timeout_s: float) -> tuple[str, list[File]]:
    """The newest commit of the model, and the files of it that are wanted."""
    try:
        info = HfApi().model_info(name, files_metadata=True, timeout=timeout_s)
    except (json.JSONDecodeError, TypeError, KeyError) as error:
        raise NotGiven("What answers at HF_ENDPOINT is no model hub") from error
    files = [
        File(file.rfilename, file.size or 0, file.lfs.sha256 if file.lfs else None, file.blob_id)
        for file in info.siblings or []
        if "/" not in file.rfilename and any(fnmatch(file.rfilename, pattern) for pattern in WANTED)
    ]
    if info.sha is None or not any(file.name.endswith(".safetensors") for file in files):
        raise unusable(f"{name} has no *.safetensors files on the hub; name a Qwen2 model that has.")
    return info.sha, files


class _Download:
    """One model's way into the hub's cache."""

    def __init__(self, name: str, commit: str, verified: Verified, report: Report) -> None:
        self.name, self.commit, self.verified, self.report = name, commit, verified, report
        self.folder = Path(constants.HF_HUB_CACHE) / _cache_name(name)
        self.snapshot = self.folder / "snapshots" / commit
        self.done = self.total = 0  # bytes

    def all(self, files: list[File]) -> Path:
        """Fetch what is missing, the configuration first: it tells whether the rest is worth the while."""
        self.total = sum(file.size for file in files)
        self.done = sum(file.size for file in files if self._has(file))
        check_space(self.folder.parent, self.total - self.done)
        for file in sorted(files, key=lambda file: (file.name != "config.json", file.size)):
            if not self._has(file):
                self._one(file)
            if not _is_right(self.snapshot / file.name, file.digest, self.verified, self.report):
                raise self._wrong(file)
            if file.name == "config.json":
                folder.check_config(self.snapshot)
        return self.snapshot

    def _has(self, file: File) -> bool:
        return (self.snapshot / file.name).exists()

    def _one(self, file: File) -> None:
        blob = self.folder / "blobs" / file.sha256 if file.sha256 else None
        if blob and not blob.exists():
            self._large(file, blob)
        pointer = Path(hf_hub_download(self.name, file.name, revision=self.commit))
        if blob and not pointer.is_symlink():
            blob.unlink(missing_ok=True)  # this system has no symbolic links, so the cache holds a copy
        self._tell(file.size)
        self.done += file.size

    def _large(self, file: File, blob: Path) -> None:
        """Download a large file; it gets its name in the cache when its digest is right."""
        incomplete = blob.with_name(f"{blob.name}.qdesk.incomplete")
        url = hf_hub_url(self.name, file.name, revision=self.commit)
        download(url, incomplete, file.size, self._tell)
        if digest_of(incomplete, hashlib.sha256(), self.report) != file.sha256:
            incomplete.unlink()
            raise self._wrong(file)
        incomplete.replace(blob)
        _remember(self.verified, blob, blob.name)

    def _tell(self, here: int) -> None:
        self.report(Progress("downloading", self.done + here, self.total, "bytes"))

    def _wrong(self, file: File) -> NotReady:
        return unusable(
            f"The digest of {file.name} of {self.name} is wrong, so the file is deleted; start again to download it "
            "anew. If that does not help, check what HF_ENDPOINT points to."
        )


def _is_right(file: Path, digest: str | None, verified: Verified, report: Report) -> bool:
    """Check a file of the cache, once; a wrong one is deleted. A file without a known digest passes."""
    if digest is None or verified.holds(file, digest):
        return True
    sha1 = hashlib.sha1(b"blob %d\0" % file.stat().st_size, usedforsecurity=False)  # as git names its objects
    if digest_of(file, hashlib.sha256() if len(digest) == 64 else sha1, report) != digest:
        file.resolve().unlink()
        file.unlink(missing_ok=True)
        return False
    _remember(verified, file, digest)
    return True


def _remember(verified: Verified, file: Path, digest: str) -> None:
    with saving_to(verified.folder):
        verified.add(file, digest)


def _named_digest(file: Path) -> str | None:
    """The digest of a file in the cache: where there are symbolic links, the cache names its blobs so."""
    name = file.resolve().name
    return name if len(name) in (40, 64) and set(name) <= set("0123456789abcdef") else None


def _cache_name(name: str) -> str:
    return f"models--{name.replace('/', '--')}"


def _within(seconds: float, call: Callable[[], T]) -> T:
    """Call in a thread and wait so long. A look-up of the host's name cannot be bounded otherwise."""
    results: queue.SimpleQueue[T | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put(call())
        except BaseException as error:
            results.put(error)

    threading.Thread(target=run, daemon=True, name="ask the hub").start()
    try:
        result = results.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(result, BaseException):
        raise result
    return result


# --- what the hub said ---


def _said(error: Exception, name: str) -> NotReady:
    match error:
        case OfflineModeIsEnabled():
            return NotGiven(f"HF_HUB_OFFLINE is set and {name} is not in the hub's cache", "unset HF_HUB_OFFLINE")
        case GatedRepoError():
            remedy = "ask for it on its page of the hub and set HF_TOKEN"
            return NotGiven(f"{name} is given out to people who asked for it", remedy)
        case RepositoryNotFoundError() | HFValidationError():
            return _no_model(name)
        case HfHubHTTPError():
            return NotGiven(f"The model hub answered with status {error.response.status_code}")
        case httpx2.TimeoutException():
            return NotGiven("The model hub stopped answering")
        case OSError() if trouble := disk_trouble(error, Path(constants.HF_HUB_CACHE)):
            return trouble
    return NotGiven(f"The model hub cannot be reached ({' '.join(str(error).split()) or type(error).__name__})")


def _no_model(name: str) -> NotGiven:
    return NotGiven(
        f"There is neither a folder {name} nor a model of that name on the hub that may be read from here",
        "check the spelling, set HF_TOKEN for a model that is private",
    )
