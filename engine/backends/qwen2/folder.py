"""A folder that somebody names: is there a whole Qwen2 model in it? Whatever is wrong is said in one sentence.

Reads headers and sizes only, never the weights. Knows nothing of downloads.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from engine.backends.qwen2.source import ModelSource, unusable
from engine.errors import NotReady

ARCHITECTURE = "qwen2"
TOKENIZERS = (("tokenizer.json",), ("vocab.json", "merges.txt"))  # either of these sets will do
INDEX = "model.safetensors.index.json"
MAX_HEADER = 100_000_000  # bytes; what the safetensors format allows


def use(folder: Path, reason: str, name: str | None = None) -> ModelSource:
    """Return the model in `folder` (or the one GGUF file that the path names). Raises NotReady with a sentence."""
    try:
        if folder.is_file():
            return _use_gguf(folder, reason, name)
        files = _files(folder)
        gguf = [file for file in files.values() if file.suffix == ".gguf"]
        if "config.json" not in files and len(gguf) == 1:
            return _use_gguf(gguf[0], reason, name or _folder_name(folder))
        check_config(folder)
        _check_tokenizer(folder, files)
        headers = _check_weights(folder, files)
        return ModelSource(name or _folder_name(folder), folder, None, reason, _identity(files, headers))
    except FileNotFoundError as error:
        raise unusable(f"There is no {error.filename}; set QDESK_MODEL to a folder that holds a model.") from error
    except PermissionError as error:
        raise unusable(f"{error.filename} cannot be read; give this user the right to read it.") from error
    except OSError as error:
        raise unusable(f"The model in {folder} cannot be read ({error}); check the disk.") from error


def _folder_name(folder: Path) -> str:
    return folder.resolve().name or str(folder)


def _use_gguf(file: Path, reason: str, name: str | None) -> ModelSource:
    if file.suffix != ".gguf":
        raise unusable(f"{file} is a file; set QDESK_MODEL to the folder of a model, or to a .gguf file.")
    from engine.backends.qwen2.gguf_header import check_gguf  # what it imports takes a while, and folders need it not

    header = check_gguf(file, ARCHITECTURE)
    identity = hashlib.sha256(header + _state(file).encode()).hexdigest()
    return ModelSource(name or file.stem, file.parent, file.name, reason, f"gguf-{identity[:16]}")


def is_complete(folder: Path) -> bool:
    """Whether no file of the model is missing; says nothing of what is in them."""
    files = _files(folder)
    try:
        return "config.json" in files and all(name in files for name in _shards(folder, files))
    except NotReady:
        return False


def _files(folder: Path) -> dict[str, Path]:
    return {file.name: file for file in folder.iterdir() if file.is_file()}


def check_config(folder: Path) -> None:
    """Refuse another architecture, and weights that are quantised already."""
    file = folder / "config.json"
    config = _read_json(file)
    architecture = config.get("model_type")
    if architecture != ARCHITECTURE:
        raise unusable(
            f"{folder} holds a model of the architecture {architecture!r}; this engine runs qwen2 (Qwen2 and Qwen2.5), "
            "so name such a model, or set QDESK_BACKEND=remote and serve the other one elsewhere."
        )
    if method := (config.get("quantization_config") or {}).get("quant_method"):
        raise unusable(
            f"The weights in {folder} are quantised already ({method}); use the model's unquantised folder, "
            "which is brought to 4 bits here."
        )


def _check_tokenizer(folder: Path, files: dict[str, Path]) -> None:
    if not any(all(name in files for name in names) for names in TOKENIZERS):
        raise unusable(f"{folder} has no tokenizer.json; copy the model's tokenizer files into it.")


def _check_weights(folder: Path, files: dict[str, Path]) -> dict[str, bytes]:
    """Check every safetensors file that belongs to the model; return their headers by file name."""
    shards = _shards(folder, files)
    headers = {}
    for name, tensors in shards.items():
        if name not in files:
            raise unusable(f"{folder} lacks {name}, which {INDEX} names; copy the missing file into it.")
        headers[name] = read_header(files[name])
        if missing := tensors - json.loads(headers[name]).keys():
            raise _damaged(files[name], f"the tensor {min(missing)} is not in it")
    return headers


def _shards(folder: Path, files: dict[str, Path]) -> dict[str, set[str]]:
    """The weight files by name, each with the tensors that the index says are in it."""
    if INDEX in files:
        shards: dict[str, set[str]] = {}
        for tensor, name in _read_json(files[INDEX]).get("weight_map", {}).items():
            shards.setdefault(name, set()).add(tensor)
        if shards:
            return shards
        raise _damaged(files[INDEX], "it names no weights")
    if found := {name: set[str]() for name in files if name.endswith(".safetensors")}:
        return found
    if any(name.endswith((".bin", ".pt", ".pth")) for name in files):
        raise unusable(
            f"{folder} has its weights as pickle files, which can hold programs and are never opened; "
            "use the model's *.safetensors files."
        )
    raise unusable(f"{folder} has no *.safetensors files; copy the model's weights into it.")


def read_header(file: Path) -> bytes:
    """Return a safetensors file's JSON header, having checked that the file is as long as the header says.

    The format: 8 bytes little-endian length, the header, then the tensors without a gap
    (github.com/huggingface/safetensors, README, "Format").
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size - 8, MAX_HEADER):
            raise _damaged(file, "its header is cut off or is none")
        header = stream.read(length)
    try:
        tensors: dict[str, Any] = json.loads(header)
        spans = sorted(tensor["data_offsets"] for name, tensor in tensors.items() if name != "__metadata__")
        ends = [0] + [end for _, end in spans]
        gapless = [begin for begin, _ in spans] == ends[:-1]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(file, "its header is not readable") from error
    if not spans or not gapless:
        raise _damaged(file, "its tensors do not follow one another")
    if 8 + length + ends[-1] != size:
        raise _damaged(file, f"it has {size} bytes instead of {8 + length + ends[-1]}")
    return header


def _read_json(file: Path) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damaged(file, "it is no JSON") from error
    if not isinstance(content, dict):
        raise _damaged(file, "it is no JSON object")
    return content


def _damaged(file: Path, how: str) -> NotReady:
    return unusable(f"{file} is damaged: {how}; copy or download it again.")


def _identity(files: dict[str, Path], headers: dict[str, bytes]) -> str:
    """A digest of all that the engine reads: small files whole, weights by header, size and time of change."""
    digest = hashlib.sha256()
    for name in sorted(files):
        if name in headers:
            digest.update(headers[name] + f"{name} {_state(files[name])}".encode())
        elif name.endswith((".json", ".txt", ".jinja")):
            digest.update(name.encode() + files[name].read_bytes())
    return f"folder-{digest.hexdigest()[:16]}"


def _state(file: Path) -> str:
    stat = file.stat()
    return f"{stat.st_size} {stat.st_mtime_ns}"
