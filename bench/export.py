"""What an export of the log costs: the server's memory while it writes, and how fast the lines come.

python -m bench.export --rows 20000

Makes the log of bench/search.py in a new folder, starts the server on it, and reads the JSON lines of all of it, as a
reviewer's browser does. Flat means: as much at the end as after the first thousand.
"""

import argparse
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import psutil

from bench.report import save
from bench.search import make
from tests.databases import add_accounts
from tests.server import running_server

EARLY = 1000  # lines


def export(folder: Path, lines: int) -> dict[str, float]:
    """Read so many lines. Memory in MiB, the file in MB."""
    with running_server(folder) as server, server.sign_in("rita") as rita:
        memory, size, begun = [mebibytes(server.process.pid)], 0, time.perf_counter()
        with rita.stream("GET", "/review/export", params={"format": "jsonl"}) as answer:
            for number, line in enumerate(answer.iter_lines(), start=1):
                size += len(line.encode()) + 1
                if number % EARLY == 0:
                    memory.append(mebibytes(server.process.pid))
        took = time.perf_counter() - begun
    if number != lines:
        raise RuntimeError(f"{number} lines came of {lines}")
    before, early, *later = memory
    return {"MB": size / 1e6, "seconds": took, "before": before, "early": early, "most": max(later), "end": later[-1]}


def mebibytes(pid: int) -> float:
    """Of memory that a process has now."""
    return float(psutil.Process(pid).memory_info().rss / 2**20)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=20_000)
    given, began = parser.parse_args(), datetime.now(UTC)
    with tempfile.TemporaryDirectory() as temporary:
        make(file := Path(temporary) / "qdesk.db", given.rows)
        add_accounts(file, {"rita": "reviewer"})
        figures = export(Path(temporary), given.rows)
    names = {
        "MB": "the file, MB",
        "seconds": "seconds",
        "before": "the server's memory before, MiB",
        "early": f"after {EARLY} lines",
        "most": "the most after that",
        "end": "at the end",
    }
    lines = [f"| {names[name]} | {value:.1f} |" for name, value in figures.items()]
    save(began, "\n".join([f"| an export of {given.rows} exchanges | |", "|---|---|", *lines]), figures)


if __name__ == "__main__":
    main()
