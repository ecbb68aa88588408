"""Writes the list of files in docs/structure.md: each file's own first sentence about itself.

    make docs

What stands above the list is written by hand. tests/test_structure.py fails when the list is not up to date.
"""

import ast
import re
import subprocess
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/structure.md"
BEGIN = "## Every file\n"
SUFFIXES = (".py", ".js", ".css")


def tracked() -> list[str]:
    """Every file that belongs to the repository, by its path, also one that is not committed yet."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return sorted(path for path in listing.stdout.splitlines() if (ROOT / path).is_file())


def sources() -> list[str]:
    """The files to list, folder by folder: all but tests and empty ones."""
    files = [path for path in tracked() if path.endswith(SUFFIXES) and not path.startswith("tests/")]
    said = [path for path in files if (ROOT / path).read_text(encoding="utf-8").strip()]
    return sorted(said, key=lambda path: path.rpartition("/"))


def document() -> str:
    """Return the page with its list made anew."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    lines = [head + BEGIN]
    for folder, files in groupby(sources(), key=lambda path: path.rpartition("/")[0]):
        lines += [f"### {folder or 'The top'}", "", *(f"- `{path}`: {first_sentence(path)}" for path in files), ""]
    return "\n".join(lines)


def first_sentence(path: str) -> str:
    """What the file says of itself, up to the first full stop."""
    text = (ROOT / path).read_text(encoding="utf-8")
    about = ast.get_docstring(ast.parse(text)) if path.endswith(".py") else _comment(text)
    paragraph = " ".join((about or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.?!])\s", paragraph, maxsplit=1)[0]


def _comment(text: str) -> str:
    """The comment that a script or style sheet begins with."""
    if block := re.match(r"/\*(.*?)\*/", text, flags=re.DOTALL):
        return block[1].strip()
    lines = re.match(r"(?://.*\n?)*", text)
    return "\n".join(line.lstrip("/ ") for line in lines[0].splitlines()) if lines else ""


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
