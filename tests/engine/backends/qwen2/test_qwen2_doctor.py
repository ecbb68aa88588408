"""What `doctor` says of the in-process engine: its 4-bit kernel, and the model that the settings name."""

import shutil
from pathlib import Path

import pytest

from engine.backends.qwen2.linear import has_kernel
from engine.backends.qwen2.packaged import QWEN2_5_CODER
from storage import Store
from tests.engine.backends.qwen2.conftest import CPU
from tests.engine.backends.qwen2.tiny import tiny_settings
from ui.console.doctor import examine


def told(models_dir: Path, model: str | Path, what: str = "model") -> str:
    settings = tiny_settings(Path("unused"), models_dir, model=str(model), data_dir=models_dir / "data")
    (line,) = [str(one) for one in examine(settings, Store(settings.sqlalchemy_url)) if one.what == what]
    return line


def test_the_kernel_that_this_processor_has_or_not_is_told(tmp_path: Path) -> None:
    line = told(tmp_path, "packaged", "kernel")
    if has_kernel(CPU):
        assert line == "ok    kernel    4-bit weights are multiplied as they are packed."
    else:
        assert line.startswith("note  kernel    No 4-bit kernel for this processor")
        assert line.endswith("a GPU has one, and so has a processor with AVX512-BF16.")


def test_a_model_folder_is_looked_into(tmp_path: Path, tiny_folder: Path) -> None:
    assert told(tmp_path, tiny_folder) == f"ok    model     {tiny_folder} holds the whole model tiny-qwen2."
    torn = shutil.copytree(tiny_folder, tmp_path / "torn")
    (torn / "model.safetensors").unlink()
    assert told(tmp_path, torn).startswith(f"bad   model     {torn} has no *.safetensors files; copy")


@pytest.mark.parametrize("model", ["packaged", "auto"])
def test_whether_the_packaged_model_is_downloaded_is_told(tmp_path: Path, model: str) -> None:
    assert told(tmp_path, model).startswith(f"note  model     QDESK_MODEL is {model}; the first start downloads")
    (tmp_path / "packaged").mkdir()
    (tmp_path / "packaged" / QWEN2_5_CODER.file_name).touch()
    assert told(tmp_path, model).endswith("the packaged model is downloaded.")


def test_what_is_no_folder_is_asked_of_the_hub(tmp_path: Path) -> None:
    assert "Somebody/Model is no folder here; the start asks the hub" in told(tmp_path, "Somebody/Model")
