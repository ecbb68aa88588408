"""Benchmarks in a test write their results where the test can read them, and not beside the real ones."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench import report

Results = Callable[[], tuple[str, Any]]


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    """What was written: the Markdown, and the figures in the JSON."""
    monkeypatch.setattr(report, "RESULTS", tmp_path)

    def read() -> tuple[str, Any]:
        (markdown,), (figures,) = tmp_path.glob("*.md"), tmp_path.glob("*.json")
        return markdown.read_text("utf-8"), json.loads(figures.read_text("utf-8"))["figures"]

    return read
