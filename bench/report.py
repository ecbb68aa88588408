"""Where figures go: bench/results, as a Markdown table and as JSON, with the machine, the date and the command."""

import json
import os
import platform
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def save(began: datetime, table: str, figures: dict[str, Any]) -> None:
    """Write and print them."""
    path = write(began, table, figures)
    print(f"{table}\n\nwritten to {path}.md and .json")


def write(began: datetime, table: str, figures: dict[str, Any]) -> Path:
    """Write them over what was written of this run before, and return the path but for its ending."""
    RESULTS.mkdir(exist_ok=True)
    module = Path(sys.argv[0]).stem
    path = RESULTS / f"{began:%Y-%m-%d-%H%M}-{module}"
    machine = f"{os.cpu_count()} cores, {_processor()}, Python {platform.python_version()}"
    command = f"python -m bench.{module} {' '.join(sys.argv[1:])}".strip()
    path.with_suffix(".md").write_text(f"{began:%Y-%m-%d %H:%M} UTC; {machine}; `{command}`\n\n{table}\n", "utf-8")
    path.with_suffix(".json").write_text(
        json.dumps({"machine": machine, "command": command, "figures": figures}, indent=1), "utf-8"
    )
    return path


def _processor() -> str:
    """The processor's name and which of the instructions it has that 4-bit kernels want."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8")
    except OSError:
        return platform.processor()
    name = next((line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")), "")
    return f"{name}, {'with' if 'avx512_bf16' in text else 'without'} AVX512-BF16"
