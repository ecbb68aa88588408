"""Programs that measure: their figures are there as they print them, and so are their last words."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from bench.load import Figures
from bench.servers import figures_of


def test_what_a_program_printed_before_it_failed_is_kept(tmp_path: Path) -> None:
    figures = Figures(1, 64, 10.0, 0.5, 0.6, 0.1, 0.2)
    line = json.dumps([asdict(figures)])
    (tmp_path / "lines").write_text(f"{line}\n{line}\nnot JSON\n")
    printed = figures_of("json.tool", "--json-lines", "--compact", str(tmp_path / "lines"))
    assert [next(printed), next(printed)] == [[figures], [figures]]
    with pytest.raises(RuntimeError, match=r"json\.tool ended with 1: Expecting value"):
        next(printed)
