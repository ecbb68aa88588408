"""A folder that somebody names: used as it is, or refused with one sentence that names the file and the way out."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter
from safetensors.numpy import save_file

from engine.backends.qwen2.source import ModelSource
from engine.backends.qwen2.weights import preferred, resolve
from engine.errors import NotReady
from engine.settings import Settings


def use(folder: Path) -> ModelSource:
    return resolve(Settings(model=str(folder)), print)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole model in two files with an index, as larger models come."""
    folder = tmp_path / "Tiny-Qwen2"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "qwen2"}')
    (folder / "tokenizer.json").write_text("{}")
    for name in ("one", "two"):
        save_file({f"{name}.weight": np.ones((64, 64), dtype=np.float32)}, folder / f"{name}.safetensors")
    index = {"weight_map": {"one.weight": "one.safetensors", "two.weight": "two.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_a_whole_folder_is_used_as_it_is(folder: Path) -> None:
    source = use(folder)
    assert (source.name, source.folder, source.gguf_file) == ("Tiny-Qwen2", folder, None)
    assert source.reason == f"QDESK_MODEL names the folder {folder}."


def test_the_identity_changes_with_weights_and_tokenizer(folder: Path) -> None:
    before = use(folder).identity
    assert use(folder).identity == before
    (folder / "tokenizer.json").write_text('{"other": 1}')
    with_tokenizer = use(folder).identity
    save_file({"one.weight": np.zeros((64, 64), dtype=np.float32)}, folder / "one.safetensors")
    assert len({before, with_tokenizer, use(folder).identity}) == 3


def test_missing_files_are_named(folder: Path) -> None:
    for name, says in [
        ("two.safetensors", "lacks two.safetensors"),
        ("tokenizer.json", "has no tokenizer.json"),
        ("config.json", "config.json; set QDESK_MODEL to a folder that holds a model"),
    ]:
        (folder / name).unlink()
        with pytest.raises(NotReady, match=says):
            use(folder)


def test_a_folder_with_pickles_alone_is_refused(folder: Path) -> None:
    for file in [*folder.glob("*.safetensors"), folder / "model.safetensors.index.json"]:
        file.unlink()
    with pytest.raises(NotReady, match=r"has no \*\.safetensors files"):
        use(folder)
    (folder / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(NotReady, match="pickle files, which can hold programs and are never opened"):
        use(folder)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ('{"model_type": "llama"}', "a model of the architecture 'llama'; this engine runs qwen2"),
        ("{}", "a model of the architecture None"),
        ("[1]", "config.json is damaged: it is no JSON object"),
        ('{"model_type":', "config.json is damaged: it is no JSON"),
        ('{"model_type": "qwen2", "quantization_config": {"quant_method": "gptq"}}', r"quantised already \(gptq\)"),
    ],
)
def test_a_config_that_is_not_qwen2s_is_refused(folder: Path, config: str, says: str) -> None:
    (folder / "config.json").write_text(config)
    with pytest.raises(NotReady, match=says):
        use(folder)


def test_damaged_weights_are_refused(folder: Path) -> None:
    file = folder / "one.safetensors"
    whole = file.read_bytes()
    for damaged, says in [
        (whole[:-1], "instead of"),
        (whole + b"more", "instead of"),
        (whole[:20], "its header is cut off"),
        (b"", "its header is cut off"),
        (b"<html>not found</html>", "its header is cut off or is none"),
        (whole[:8] + b"?" * 60 + whole[68:], "its header is not readable"),
        (whole.replace(b"one.weight", b"xxx.weight"), "the tensor one.weight is not in it"),
    ]:
        file.write_bytes(damaged)
        with pytest.raises(NotReady, match=f"one.safetensors is damaged: .*{says}.*; copy or download it again"):
            use(folder)
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(NotReady, match="it names no weights"):
        use(folder)


@contextmanager
def nobody() -> Iterator[None]:
    """Go on without root's right to read and write everything, where root runs the tests."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_what_may_not_be_read_is_named(folder: Path) -> None:
    for parent in [folder, *folder.parents]:
        if parent != Path(tempfile.gettempdir()) and parent.is_relative_to(tempfile.gettempdir()):
            parent.chmod(0o755)
    for locked in (folder / "config.json", folder.parent):  # the second hides the folder as well
        locked.chmod(0)
        with nobody(), pytest.raises(NotReady) as refused:
            use(folder)
        locked.chmod(0o755)
        named = locked if locked.is_file() else folder
        assert str(refused.value) == f"{named} cannot be read; give this user the right to read it."


def test_a_name_that_is_nothing_says_what_is_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (tmp_path / "nowhere", "qwen2", "../x", "a/b/c"):
        with pytest.raises(NotReady, match="there is no such folder; name a model's folder, a hub name such as"):
            resolve(Settings(model=str(name)), print)


def write_gguf(file: Path, architecture: str = "qwen2") -> None:
    writer = GGUFWriter(file, architecture)
    writer.add_array("tokenizer.ggml.tokens", ["<|im_start|>", "你好", "x"])
    writer.add_array("tokenizer.ggml.token_type", [1, 2, 3])
    writer.add_float32("qwen2.rope.freq_base", 1e6)
    writer.add_tensor("token_embd.weight", np.ones((64, 32), dtype=np.float32))
    writer.add_tensor("output_norm.weight", np.ones(64, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_folder_with_one_gguf_file_will_do_and_so_will_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    write_gguf(file)
    source = use(tmp_path)
    assert (source.folder, source.gguf_file, source.name) == (tmp_path, "tiny.gguf", tmp_path.name)
    assert use(file).identity == source.identity
    assert use(file).name == "tiny"


def test_a_gguf_file_that_will_not_do_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    write_gguf(file, "llama")
    with pytest.raises(NotReady, match="a model of the architecture 'llama'"):
        use(tmp_path)
    write_gguf(file)
    whole = file.read_bytes()
    for damaged, says in [
        (whole[:-4000], "instead of"),
        (whole[:100], "it is cut off"),
        (b"HTML", "it is no GGUF file"),
        (whole[:4] + b"\x09\0\0\0" + whole[8:], "its GGUF version is 9"),
    ]:
        file.write_bytes(damaged)
        with pytest.raises(NotReady, match=f"tiny.gguf is damaged: .*{says}.*; copy or download it again"):
            use(tmp_path)
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(NotReady, match="is a file; set QDESK_MODEL to the folder of a model"):
        use(tmp_path / "notes.txt")


def test_auto_means_the_large_model_where_it_fits() -> None:
    assert preferred(None) == ("Qwen/Qwen2-0.5B-Instruct", "There is no CUDA device, so the small model runs.")
    assert preferred(6 * 10**9)[0] == "Qwen/Qwen2-0.5B-Instruct"
    assert preferred(24 * 10**9) == (
        "Qwen/Qwen2-7B-Instruct",
        "The GPU has 24.0 GB free, so the large model runs.",
    )
