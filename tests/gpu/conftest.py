"""What needs a GPU: left out, with the reason, where there is none. Not in the default run: `pytest tests/gpu`."""

from pathlib import Path

import pytest
import torch

from engine.backends.qwen2.model import Qwen2
from engine.backends.qwen2.quantize import ready_folder
from tests.engine.backends.qwen2.tiny import make_tiny, tiny_source

CUDA = torch.device("cuda")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.gpu)
            if not torch.cuda.is_available():
                item.add_marker(pytest.mark.skip(reason="there is no CUDA device"))


@pytest.fixture(scope="session")
def on_gpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model's ready folder."""
    folder = tmp_path_factory.mktemp("gpu")
    return ready_folder(tiny_source(make_tiny(folder / "tiny")), "nf4", folder, CUDA, lambda _: None)


@pytest.fixture(scope="session")
def model(on_gpu: Path) -> Qwen2:
    return Qwen2.read(on_gpu, CUDA, unpack=False)
