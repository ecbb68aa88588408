"""The review's CSV opened by LibreOffice itself: Chinese is intact, every row is one row, and nothing is a formula."""

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from engine.types import Message
from storage.records import Mark
from tests.ui.exchanges import exchange
from ui.components.review.export import COLUMNS, csv_head, csv_line

OFFICE = shutil.which("soffice") or shutil.which("libreoffice")
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
ATTACKS = ("=1+1", '=HYPERLINK("http://x";"看")', "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1", "＝1+1")
NO_OFFICE = "no LibreOffice here; on Debian: apt-get install --no-install-recommends libreoffice-calc-nogui (100 MB)"


@pytest.mark.skipif(OFFICE is None, reason=NO_OFFICE)
def test_libreoffice_reads_the_export_with_chinese_intact_and_no_formula(tmp_path: Path) -> None:
    asked = [*ATTACKS, "差旅报销，怎么走流程？", 'two\nlines, "quoted"; 分号']
    lines = [
        csv_line(
            exchange(f"e{n}", answer=text, messages=(Message("user", text),)), Mark(labels=(text,)), {"p": "王小明"}
        )
        for n, text in enumerate(asked)
    ]
    (tmp_path / "log.csv").write_text(csv_head() + "".join(lines), encoding="utf-8", newline="")
    assert OFFICE is not None
    # Without a window nobody is asked: comma, quotes and UTF-8, as the dialog offers for a file that begins so.
    dialog = "--infilter=Text - txt - csv (StarCalc):44,34,76"
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    command = [
        OFFICE,
        profile,
        "--headless",
        dialog,
        "--convert-to",
        "fods",
        "--outdir",
        str(tmp_path),
        str(tmp_path / "log.csv"),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    head, *rows = _rows(tmp_path / "log.fods")
    assert head == list(COLUMNS)
    read = [dict(zip(head, row, strict=False)) for row in rows]
    assert [row["person"] for row in read] == ["王小明"] * len(asked)
    for text, row in zip(asked, read, strict=True):
        for cell in ("prompt", "answer"):
            assert row[cell].lstrip("'").split() == text.split(), "the text is whole"
    assert "table:formula" not in (tmp_path / "log.fods").read_text(encoding="utf-8")


def _rows(path: Path) -> list[list[str]]:
    """The cells of the only sheet as they are shown, without the empty rows at its end."""
    rows = []
    for row in ElementTree.parse(path).iter(f"{TABLE}table-row"):
        cells: list[str] = []
        for cell in row.iter(f"{TABLE}table-cell"):
            shown = "\n".join("".join(each.itertext()) for each in cell.iter(f"{TEXT}p"))
            cells += [shown] * min(int(cell.get(f"{TABLE}number-columns-repeated", 1)), len(COLUMNS))
        if any(cells):
            rows.append(cells)
    return rows
