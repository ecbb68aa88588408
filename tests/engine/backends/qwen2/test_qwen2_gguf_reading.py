"""A GGUF file read quickly says what it says when it is read slowly, and how far the reading has come."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np

from engine.types import Progress

TOKENS = ["a", "Ġhello", "北京", "😀", "<|im_end|>", "", "x" * 300]


def small_file(path: Path) -> Path:
    writer = gguf.GGUFWriter(path, "qwen2")
    writer.add_name("small")
    writer.add_block_count(1)
    writer.add_context_length(512)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_merges(["a b", "Ġ hello"])
    writer.add_token_types([1] * len(TOKENS))
    writer.add_add_bos_token(False)
    writer.add_tensor("token_embd.weight", np.ones((7, 32), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_what_is_read_quickly_is_the_same(tmp_path: Path) -> None:
    from transformers import modeling_gguf_pytorch_utils as reading  # here, since that takes a second in each worker

    from engine.backends.qwen2.gguf_reading import quickly

    file = small_file(tmp_path / "small.gguf")
    slowly: dict[str, Any] = reading.load_gguf_checkpoint(file)
    with quickly(lambda _: None):
        soon = reading.load_gguf_checkpoint(file)
    assert soon == slowly
    assert soon["tokenizer"]["tokens"] == TOKENS


def test_the_file_is_parsed_once_and_reported_by_tensor(tmp_path: Path) -> None:
    from transformers import modeling_gguf_pytorch_utils as reading

    from engine.backends.qwen2.gguf_reading import quickly

    file, told = small_file(tmp_path / "small.gguf"), list[Progress]()
    with quickly(told.append):
        assert gguf.GGUFReader(file) is gguf.GGUFReader(file)
        tensors = list(vars(reading)["tqdm"](gguf.GGUFReader(file).tensors, desc=""))
    assert told == [Progress("reading the model", 0, 1)]
    assert len(tensors) == 1
    assert gguf.GGUFReader(file) is not gguf.GGUFReader(file)
