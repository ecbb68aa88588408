"""The head of a GGUF file: which architecture it is for, and whether the file is as long as it says.

The format is described in github.com/ggml-org/ggml, docs/gguf.md. The weights themselves are read elsewhere.
"""

import struct
from pathlib import Path
from typing import BinaryIO

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType

from engine.backends.qwen2.source import unusable

FIXED = {  # bytes of the values that have a fixed length
    GGUFValueType.UINT8: 1,
    GGUFValueType.INT8: 1,
    GGUFValueType.UINT16: 2,
    GGUFValueType.INT16: 2,
    GGUFValueType.UINT32: 4,
    GGUFValueType.INT32: 4,
    GGUFValueType.FLOAT32: 4,
    GGUFValueType.BOOL: 1,
    GGUFValueType.UINT64: 8,
    GGUFValueType.INT64: 8,
    GGUFValueType.FLOAT64: 8,
}


def check_gguf(file: Path, architecture: str) -> bytes:
    """Return the header's bytes. Raises NotReady for another architecture and for a file that is cut off."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        try:
            found, end = _read(stream)
        except (EOFError, ValueError, MemoryError, OverflowError) as error:
            raise unusable(f"{file} is damaged: {str(error) or 'it is cut off'}; copy or download it again.") from error
        header_size = stream.tell()
        stream.seek(0)
        header = stream.read(header_size)
    if found != architecture:
        raise unusable(
            f"{file} holds a model of the architecture {found!r}; this engine runs qwen2 (Qwen2 and Qwen2.5), "
            "so name such a model, or set QDESK_BACKEND=remote and serve the other one elsewhere."
        )
    if size < end:
        raise unusable(f"{file} is damaged: it has {size} bytes instead of {end}; copy or download it again.")
    return header


def _read(stream: BinaryIO) -> tuple[str, int]:
    """The architecture, and how many bytes the file must have."""
    if stream.read(4) != b"GGUF":
        raise ValueError("it is no GGUF file")
    version, tensors, pairs = _unpack(stream, "<IQQ")
    if version not in (2, 3):
        raise ValueError(f"its GGUF version is {version}, and 2 and 3 are known")
    values: dict[str, str | int | None] = {}
    for _ in range(pairs):
        key = _string(stream)
        values[key] = _value(stream, GGUFValueType(_unpack(stream, "<I")[0]))
    end = max((_tensor_end(stream) for _ in range(tensors)), default=0)
    alignment = int(values.get("general.alignment") or 32)
    data = -(-stream.tell() // alignment) * alignment
    return str(values.get("general.architecture")), data + end


def _tensor_end(stream: BinaryIO) -> int:
    """Read a tensor's description; return where its data ends, counted from where all data begins."""
    _string(stream)
    (dimensions,) = _unpack(stream, "<I")
    elements = 1
    for length in _unpack(stream, f"<{min(dimensions, 8)}Q"):
        elements *= length
    kind, offset = _unpack(stream, "<IQ")
    block, block_size = GGML_QUANT_SIZES[GGMLQuantizationType(kind)]
    return int(offset + elements // block * block_size)


def _value(stream: BinaryIO, kind: GGUFValueType) -> str | int | None:
    """Read a value; return it when it is a string or a 32-bit number, which is all that is asked for here."""
    if kind is GGUFValueType.STRING:
        return _string(stream)
    if kind is GGUFValueType.UINT32:
        return int(_unpack(stream, "<I")[0])
    if kind is not GGUFValueType.ARRAY:
        _skip(stream, FIXED[kind])
        return None
    item, count = _unpack(stream, "<IQ")
    item = GGUFValueType(item)
    if item in FIXED:
        _skip(stream, FIXED[item] * count)
    else:
        for _ in range(count):
            _value(stream, item)
    return None


def _string(stream: BinaryIO) -> str:
    (length,) = _unpack(stream, "<Q")
    return _take(stream, length).decode("utf-8", "replace")


def _unpack(stream: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, _take(stream, struct.calcsize(form)))


def _take(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError("it is cut off")
    return data


def _skip(stream: BinaryIO, count: int) -> None:
    stream.seek(count, 1)
