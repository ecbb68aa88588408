"""Models of a hub: the real client against a hub on loopback, in a process of its own, as the server would do it."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from engine.backends.qwen2.weights import without_hub
from tests.disks import fill_up, small_disk_at
from tests.engine.backends.qwen2 import hub as hubs
from tests.server import run_to_its_end

NAME = "Someone/Tiny-Qwen2"
WEIGHTS = save({"model.norm.weight": np.random.default_rng(0).integers(0, 256, 3_000_000, dtype=np.uint8)})
MODEL = {
    "README.md": b"Not wanted.",
    "config.json": json.dumps({"model_type": "qwen2"}).encode(),
    "tokenizer.json": b"{}",
    "tokenizer_config.json": b"{}",
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": b"Not wanted either.",
}


@dataclass(frozen=True)
class Fetched:
    returncode: int
    output: str  # what it logged, and below it what it answers

    @property
    def last(self) -> str:
        return self.output.splitlines()[-1]


Fetch = Callable[..., Fetched]


@pytest.fixture
def hub() -> Iterator[hubs.Hub]:
    with hubs.serve() as hub:
        hub.models[NAME] = dict(MODEL)
        yield hub


@pytest.fixture
def fetch(hub: hubs.Hub, tmp_path: Path) -> Fetch:
    """Run the command that fetches what the settings name; more settings by keyword."""

    def run(**settings: str) -> Fetched:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "QDESK_"))}
        environment |= {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "QDESK_DEVICE": "cpu"}
        environment |= {"QDESK_MODELS_DIR": str(tmp_path / "models"), "QDESK_MODEL": NAME} | settings
        return Fetched(*run_to_its_end(("-m", "engine.backends.qwen2.weights"), environment))

    return run


def sentence(result: Fetched) -> str:
    """What the command said when it gave up: its last line, and nothing like a stack trace before it."""
    assert result.returncode == 1
    assert "Traceback" not in result.output
    return result.last


def in_cache(tmp_path: Path) -> set[str]:
    return {file.name for file in tmp_path.glob("hf/hub/models--*/snapshots/*/*")}


def test_a_model_is_fetched_once_and_then_needs_no_hub(fetch: Fetch, hub: hubs.Hub) -> None:
    result = fetch()
    folder = Path(result.last)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS
    assert {file.name for file in folder.iterdir()} == MODEL.keys() - {"README.md", "pytorch_model.bin"}
    assert "downloading: 100 %" in result.output
    assert hub.served["model.safetensors"] == len(WEIGHTS)
    hub.asked.clear()
    assert Path(fetch().last) == folder
    assert Path(fetch(HF_HUB_OFFLINE="1").last) == folder
    assert hub.asked == []


def test_a_token_goes_to_the_hub_and_not_to_the_store_it_sends_us_to(fetch: Fetch, hub: hubs.Hub) -> None:
    assert fetch(HF_TOKEN="hf_secret").returncode == 0
    assert not hub.store_saw_token


def test_a_broken_connection_goes_on_where_it_broke(fetch: Fetch, hub: hubs.Hub) -> None:
    hub.break_at["model.safetensors"] = [1_000_000, 2_000_000]
    result = fetch()
    assert Path(result.last, "model.safetensors").read_bytes() == WEIGHTS
    assert hub.served["model.safetensors"] == len(WEIGHTS)  # every byte was sent once


def test_a_download_goes_on_at_the_next_start(fetch: Fetch, hub: hubs.Hub, tmp_path: Path) -> None:
    hub.break_at["model.safetensors"] = [2_000_000, -1]  # one piece, then an error
    assert "The model hub answered with status 500; check the network" in sentence(fetch())
    assert "model.safetensors" not in in_cache(tmp_path)
    assert fetch().returncode == 0
    assert hub.served["model.safetensors"] == len(WEIGHTS)


def test_a_wrong_byte_is_refused_and_leaves_no_file(fetch: Fetch, hub: hubs.Hub, tmp_path: Path) -> None:
    hub.damaged = {"tokenizer.json"}
    assert f"The digest of tokenizer.json of {NAME} is wrong" in sentence(fetch())
    assert "tokenizer.json" not in in_cache(tmp_path)
    hub.damaged = {"model.safetensors"}
    assert f"The digest of model.safetensors of {NAME} is wrong" in sentence(fetch())
    assert "model.safetensors" not in in_cache(tmp_path)
    assert list(tmp_path.glob("hf/hub/**/*.incomplete")) == []
    hub.damaged = set()
    assert fetch().returncode == 0


def test_a_file_that_was_damaged_in_the_cache_is_fetched_anew(fetch: Fetch, hub: hubs.Hub) -> None:
    folder = Path(fetch().last)
    (folder / "model.safetensors").resolve().write_bytes(WEIGHTS[:-1] + b"?")
    assert fetch().returncode == 0
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS


def test_an_unknown_name_and_a_gated_model_are_told_apart(fetch: Fetch, hub: hubs.Hub) -> None:
    assert "nor a model of that name on the hub" in sentence(fetch(QDESK_MODEL="Someone/Else"))
    hub.gated = {NAME}
    assert "set HF_TOKEN" in sentence(fetch())


def test_another_architecture_is_refused_before_its_weights_are_fetched(fetch: Fetch, hub: hubs.Hub) -> None:
    hub.models[NAME]["config.json"] = b'{"model_type": "llama"}'
    assert "a model of the architecture 'llama'" in sentence(fetch())
    assert hub.served["model.safetensors"] == 0


def test_a_model_without_safetensors_is_refused(fetch: Fetch, hub: hubs.Hub) -> None:
    del hub.models[NAME]["model.safetensors"]
    assert "has no *.safetensors files on the hub" in sentence(fetch())


def test_something_else_than_a_hub_is_told(fetch: Fetch, hub: hubs.Hub) -> None:
    hub.page = b"<html>Please sign in to the network.</html>"
    assert "What answers at HF_ENDPOINT is no model hub" in sentence(fetch())


def test_an_explicit_name_does_not_fall_back(fetch: Fetch) -> None:
    assert "The model hub cannot be reached" in sentence(fetch(HF_ENDPOINT="http://127.0.0.1:9"))
    assert f"HF_HUB_OFFLINE is set and {NAME} is not" in sentence(fetch(HF_HUB_OFFLINE="1"))


def test_a_silent_hub_is_given_up_after_the_given_time(hub: hubs.Hub, tmp_path: Path) -> None:
    hub.silent = True
    ask = (
        "from engine.backends.qwen2 import hub; from pathlib import Path\n"
        f"try: hub.fetch('{NAME}', Path('models'), print, answer_s=0.2)\n"
        "except hub.NotGiven as error: print(error.cause)"
    )
    environment = os.environ | {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path)}
    assert run_to_its_end(("-c", ask), environment) == (0, "No model hub answered within 0.2 s\n")


def test_auto_takes_the_small_model_without_a_gpu(fetch: Fetch, hub: hubs.Hub) -> None:
    hub.models["Qwen/Qwen2-0.5B-Instruct"] = dict(MODEL)
    result = fetch(QDESK_MODEL="auto")
    assert "models--Qwen--Qwen2-0.5B-Instruct" in result.last
    assert "There is no CUDA device, so the small model runs." in result.output


def test_auto_with_neither_hub_nor_package_index_says_what_to_do(fetch: Fetch, tmp_path: Path) -> None:
    result = fetch(QDESK_MODEL="auto", HF_HUB_OFFLINE="1", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert "set QDESK_MODEL to a model's folder" in sentence(result)


def test_a_hub_cache_that_cannot_be_written_is_one_sentence(fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    assert "Models cannot be saved in" in sentence(fetch(HF_HOME=str(tmp_path / "taken")))


def test_a_disk_without_room_for_the_model_is_one_sentence(fetch: Fetch, hub: hubs.Hub, tmp_path: Path) -> None:
    (tmp_path / "hf").mkdir()
    with small_disk_at(tmp_path / "hf", megabytes=4) as disk:
        assert f"The model needs 0.1 GB on the disk of {disk}" in sentence(fetch())
        assert not hub.served


def test_a_disk_that_becomes_full_meanwhile_is_one_sentence_and_leaves_no_file(
    fetch: Fetch, hub: hubs.Hub, tmp_path: Path
) -> None:
    (tmp_path / "hf").mkdir()
    with small_disk_at(tmp_path / "hf", megabytes=80) as disk:
        hub.before_sending = lambda file: fill_up(disk / "ballast") if hub.is_large(file) else None
        said = sentence(fetch())
        assert f"The disk of {disk}" in said
        assert "is full" in said
        assert "model.safetensors" not in in_cache(tmp_path)
        (disk / "ballast").unlink()
        hub.before_sending = lambda file: None
        assert (Path(fetch().last) / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.model
def test_auto_falls_back_to_the_packaged_model_when_the_hub_is_silent(fetch: Fetch, hub: hubs.Hub) -> None:
    from engine.settings import Settings

    hub.silent = True
    result = fetch(QDESK_MODEL="auto", QDESK_MODELS_DIR=str(Settings().models_dir))
    assert result.last.endswith("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")
    assert "No model hub answered within" in result.output
    assert "so the packaged model runs." in result.output
    likely = without_hub(Settings(model="auto"))  # what is looked at while the hub is asked
    assert likely is not None
    assert likely.folder / (likely.gguf_file or "") == Path(result.last)


def test_without_the_packaged_model_nothing_is_likely_while_a_hub_is_asked(tmp_path: Path) -> None:
    from engine.settings import Settings

    assert without_hub(Settings(model="auto", models_dir=tmp_path)) is None
    assert without_hub(Settings(model="packaged", models_dir=tmp_path)) is None  # there is no hub to wait for
