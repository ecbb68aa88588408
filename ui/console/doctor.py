"""A look at everything that Qdesk needs, before it serves or when it does not: one line each, with what to do.

Changes nothing, downloads nothing.
"""

import importlib
import importlib.util
import os
import platform
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from engine import hardware
from engine.errors import NotReady
from engine.settings import Settings
from ui.starting import NO_OTEL, check_address

if TYPE_CHECKING:
    from storage import Store
    from storage.checkup import Checkup

NEEDED = 4 * 10**9  # bytes for a download, its 4-bit weights and some months of log


Mark = Literal["ok", "note", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    mark: Mark
    what: str
    sentence: str

    @property
    def bad(self) -> bool:
        return self.mark == "bad"

    def __str__(self) -> str:
        return f"{self.mark:<5} {self.what:<9} {self.sentence}"


def examine(settings: Settings, store: "Store") -> list[Finding]:
    """Every finding, in the order in which they matter at a start. Never raises for what it finds."""
    machine = hardware.read()
    return [
        _machine(machine),
        _gpu(machine, settings),
        _kernel(settings),
        _model(settings),
        *(_disk(what, folder) for what, folder in (("data", settings.data_dir), ("models", settings.models_dir))),
        _port(settings),
        _sqlite(settings) if settings.sqlalchemy_url.startswith("sqlite") else _postgresql(store.check_up()),
        *([_traces()] if settings.otlp_endpoint else []),
    ]


def _machine(machine: hardware.Hardware) -> Finding:
    memory, cores = machine.memory_total / 1e9, os.cpu_count() or 1
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    told = f"{system}, {cores} cores, {memory:.0f} GB"
    if memory < 4:
        return Finding("note", "machine", f"{told}: little memory; only the packaged model fits.")
    return Finding("ok", "machine", f"{told}, {machine.cpu_name}.")


def _gpu(machine: hardware.Hardware, settings: Settings) -> Finding:
    if machine.gpus:
        told = ", ".join(f"{gpu.name} with {gpu.memory_total / 1e9:.0f} GB" for gpu in machine.gpus)
        return Finding("ok", "GPU", f"{told}.")
    why = machine.gpu_trouble or "There is none."
    if settings.device.startswith("cuda"):
        return Finding(
            "bad", "GPU", f"{why} Install NVIDIA's driver until `nvidia-smi` shows one, or set QDESK_DEVICE=auto."
        )
    told = "Answers are computed on the processor, which is slower; with NVIDIA's driver Qdesk takes a GPU by itself."
    return Finding("note", "GPU", f"{why} {told}")


def _kernel(settings: Settings) -> Finding:
    if settings.backend != "qwen2":
        return Finding("ok", "kernel", f"Not needed: the backend is {settings.backend}.")
    if not importlib.util.find_spec("bitsandbytes"):
        return Finding("bad", "kernel", "bitsandbytes is not installed; run `make run` or pip install it.")
    from engine.backends.qwen2.linear import has_kernel
    from engine.backends.qwen2.loading import choose_device

    if has_kernel(choose_device("cpu" if settings.device == "cpu" else "auto")):
        return Finding("ok", "kernel", "4-bit weights are multiplied as they are packed.")
    told = "No 4-bit kernel for this processor: weights are unpacked to 16 bits, four times the memory"
    return Finding("note", "kernel", f"{told}; a GPU has one, and so has a processor with AVX512-BF16.")


def _model(settings: Settings) -> Finding:
    if settings.backend != "qwen2":
        return Finding("ok", "model", f"The backend {settings.backend} brings its own.")
    if settings.model in ("auto", "packaged"):
        from engine.backends.qwen2 import packaged

        if packaged.is_there(settings.models_dir):
            return Finding("ok", "model", f"QDESK_MODEL is {settings.model}; the packaged model is downloaded.")
        return Finding("note", "model", f"QDESK_MODEL is {settings.model}; the first start downloads (or: make model).")
    if (named := Path(settings.model).expanduser()).exists():
        from engine.backends.qwen2.folder import use

        try:
            return Finding("ok", "model", f"{named} holds the whole model {use(named, '').name}.")
        except NotReady as wrong:
            return Finding("bad", "model", str(wrong))
    return Finding("note", "model", f"{named} is no folder here; the start asks the hub for it, else name another.")


def _disk(what: str, folder: Path) -> Finding:
    there = next(parent for parent in (folder.absolute(), *folder.absolute().parents) if parent.exists())
    free = shutil.disk_usage(there).free
    told = f"{folder} has {free / 1e9:.1f} GB free"
    if not os.access(there, os.W_OK):
        return Finding("bad", what, f"{folder} cannot be written; give it to the account that runs Qdesk.")
    return Finding("note", what, f"{told}; make room.") if free < NEEDED else Finding("ok", what, f"{told}.")


def _port(settings: Settings) -> Finding:
    try:
        check_address(settings.host, settings.port)
    except SystemExit as taken:
        return Finding("note", "port", f"{taken} If that is Qdesk itself, all is well.")
    return Finding("ok", "port", f"{settings.host} port {settings.port} is free.")


def _sqlite(settings: Settings) -> Finding:
    file = Path(settings.sqlalchemy_url.removeprefix("sqlite:///"))
    if not file.exists():
        return Finding("ok", "database", f"{file} is made at the first start.")
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as database:
            [(sound,)] = database.execute("PRAGMA quick_check(1)").fetchall()
            [(exchanges,)] = database.execute("SELECT count(*) FROM exchanges").fetchall()
    except sqlite3.Error as error:
        return Finding("bad", "database", f"{file} cannot be read ({error}); put a backup back with `restore`.")
    if sound != "ok":
        return Finding("bad", "database", f"{file} is damaged ({sound}); put a backup back with `restore`.")
    return Finding("ok", "database", f"{file} is sound, with {exchanges} exchanges.")


def _postgresql(found: "Checkup") -> Finding:
    def told(mark: Mark, sentence: str) -> Finding:
        return Finding(mark, "database", sentence)

    if found.trouble:
        return told("bad", f"It does not answer ({found.trouble}); start PostgreSQL, or correct QDESK_DATABASE_URL.")
    there = f"PostgreSQL {found.version}"
    match found.schema:
        case "foreign":
            return told("bad", f"{there} has another program's tables there; name an empty database.")
        case "newer":
            return told("bad", f"{there} has a newer version's tables; install that version of Qdesk.")
        case "none" | "older" if not found.may_create:
            return told(
                "bad", f"{there} lets this account make no tables; let the database's owner GRANT CREATE on it."
            )
        case "none":
            return told("ok", f"{there} is there; the first start makes the tables.")
    exchanges = f"{there} is there, with {found.exchanges} exchanges"
    if not found.indexed:
        return told("note", f"{exchanges}, searched without an index; let its owner run CREATE EXTENSION pg_trgm.")
    if found.schema == "older":
        return told("note", f"{exchanges} in an older schema; the next start, or `migrate`, brings it to this one.")
    return told("ok", f"{exchanges}.")


def _traces() -> Finding:
    try:
        importlib.import_module("ui.tracing")
    except ImportError:
        return Finding("bad", "traces", NO_OTEL)
    return Finding("ok", "traces", "Sent to the collector of QDESK_OTLP_ENDPOINT; the log says if it takes none.")
