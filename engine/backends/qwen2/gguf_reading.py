"""Lets transformers read a GGUF file in seconds instead of a minute, and tell how far it has come.

The time goes to the 300,000 strings of the vocabulary: gguf slices a memory map for each, which is slow, transformers
makes a list of numbers of each, and both do it anew for configuration, tokenizer and weights. Nothing is read
differently, only sooner.
"""

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import gguf
import numpy as np
from transformers import modeling_gguf_pytorch_utils as reading

from engine.backends.qwen2.linear import replaced
from engine.types import Progress, Report

_plain_value: Any = vars(reading)["_gguf_parse_value"]


@contextmanager
def quickly(report: Report) -> Iterator[None]:
    """Within this block transformers reads GGUF files quickly, and reports each tensor."""

    def reported(tensors: Sequence[Any], desc: str) -> Iterator[Any]:
        for done, tensor in enumerate(tensors):
            report(Progress("reading the model", done, len(tensors)))
            yield tensor

    with (
        replaced(gguf, GGUFReader=functools.cache(_Reader)),
        replaced(reading, tqdm=reported, _gguf_parse_value=_value),
    ):
        yield


class _Reader(gguf.GGUFReader):
    def _get(self, offset: int, *args: Any, **kwargs: Any) -> Any:
        self.data: Any = np.asarray(self.data)  # a plain view: slicing one is ten times as fast as slicing the map
        return super()._get(offset, *args, **kwargs)


def _value(value: Any, types: list[int]) -> Any:
    return value.tobytes().decode() if types[-1] == gguf.GGUFValueType.STRING else _plain_value(value, types)
