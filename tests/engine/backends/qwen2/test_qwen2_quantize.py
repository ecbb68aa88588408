"""The ready folder: made once, never used half-made or damaged, and refused for what is no Qwen2."""

import json
import shutil
from pathlib import Path

import pytest
import transformers
from safetensors.torch import load_file

from engine.backends.qwen2.quantize import ready_folder, size_on_disk
from engine.backends.qwen2.ready import CONTROL, MANIFEST, SHAPE, TOKENIZER, WEIGHTS, is_whole
from engine.errors import EngineError
from engine.types import Progress
from tests.disks import fill_up, small_disk_at
from tests.engine.backends.qwen2.conftest import CPU
from tests.engine.backends.qwen2.tiny import tiny_source

FILES = {CONTROL, MANIFEST, SHAPE, TOKENIZER, WEIGHTS}


def make(source: Path, models_dir: Path) -> tuple[Path, set[str]]:
    """Return the ready folder and the stages that were reported."""
    stages: list[Progress] = []
    folder = ready_folder(tiny_source(source), "nf4", models_dir, CPU, stages.append)
    return folder, {progress.stage for progress in stages}


def test_it_is_made_once_and_checked_after(tiny_folder: Path, tmp_path: Path) -> None:
    folder, stages = make(tiny_folder, tmp_path)
    assert {file.name for file in folder.iterdir()} == FILES
    assert "quantising" in stages
    assert make(tiny_folder, tmp_path) == (folder, {"checking"})


@pytest.mark.parametrize("name", sorted(FILES))
def test_whatever_is_damaged_is_made_again(ready: Path, tiny_folder: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "ready" / ready.name
    shutil.copytree(ready, folder)
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    assert not is_whole(folder, lambda _: None)
    assert make(tiny_folder, tmp_path)[0] == folder
    assert is_whole(folder, lambda _: None)


def test_what_breaks_off_leaves_nothing_behind(tiny_folder: Path, tmp_path: Path) -> None:
    def give_up(progress: Progress) -> None:
        if progress.stage == "quantising":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ready_folder(tiny_source(tiny_folder), "nf4", tmp_path, CPU, give_up)
    (left,) = tmp_path.iterdir()
    assert list(left.iterdir()) == []


def test_what_a_killed_process_left_is_cleared_away(tiny_folder: Path, tmp_path: Path) -> None:
    left = tmp_path / "ready" / "other.making-999999999"
    left.mkdir(parents=True)
    make(tiny_folder, tmp_path)
    assert not left.exists()


def test_a_disk_that_becomes_full_meanwhile_is_one_sentence(tiny_folder: Path, tmp_path: Path) -> None:
    with small_disk_at(tmp_path, 80) as disk:

        def others_save_something(progress: Progress) -> None:
            if progress.stage == "saving":
                fill_up(disk / "ballast")

        with pytest.raises(EngineError, match=r"is full; free some space there"):
            ready_folder(tiny_source(tiny_folder), "nf4", disk, CPU, others_save_something)
        assert list((disk / "ready").iterdir()) == []


def test_the_space_that_it_needs_is_known_beforehand(tiny_folder: Path, ready: Path) -> None:
    model = transformers.Qwen2ForCausalLM.from_pretrained(tiny_folder)
    taken = sum(tensor.nbytes for tensor in load_file(ready / WEIGHTS).values())
    assert size_on_disk(model, "nf4") == pytest.approx(taken, rel=0.05)
    weights = model.config.vocab_size * model.config.hidden_size
    assert size_on_disk(model, "nf4") >= 2 * weights  # the embedding stays as it is


def test_another_architecture_is_refused_with_a_sentence(tiny_folder: Path, tmp_path: Path) -> None:
    transformers.LlamaConfig(hidden_size=64, num_hidden_layers=1).save_pretrained(tmp_path / "llama")
    with pytest.raises(EngineError, match="'llama'; this engine runs qwen2"):
        make(tmp_path / "llama", tmp_path)


def test_a_stretched_context_is_refused_with_a_sentence(tiny_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "yarn"
    shutil.copytree(tiny_folder, folder)
    config = json.loads((folder / "config.json").read_text())
    config["rope_parameters"] = {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 2.0}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(EngineError, match="stretches its context"):
        make(folder, tmp_path)
