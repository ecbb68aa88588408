"""A client's program in a process of its own: it is given an order as a line and answers with a line."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.server import API_KEY


class Program:
    """`order("ask", url)` gives what the client made of it; further parts of the order go as they are."""

    def __init__(self, name: str, process: "subprocess.Popen[str]") -> None:
        self.name, self._process = name, process

    def order(self, do: str, url: str, *say: str, **parts: Any) -> dict[str, Any]:
        """Give an order about the server at `url`, with what is said in turn; `parts` may name key and model."""
        assert self._process.stdin
        assert self._process.stdout
        order = {"do": do, "url": f"{url}/v1", "key": API_KEY, "model": "default", "say": say or ["hello"], **parts}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def program(name: str, command: Sequence[str | Path], folder: Path) -> Iterator[Program]:
    """Run this command until the block is left."""
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    with process:  # closes what it reads, at which it ends
        yield Program(name, process)
