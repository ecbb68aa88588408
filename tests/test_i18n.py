"""Every text of the pages is there in Chinese too, says the same names in braces, and none is left over."""

import ast
import re
import string
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from ui.i18n import language

UI = Path(__file__).parent.parent / "ui"
SOURCES = sorted(UI.rglob("*.py"))
CATALOGUES = sorted((UI / "i18n/zh").glob("*.po"))


@cache
def _translations() -> dict[str, dict[str, str]]:
    """By file name: English text to Chinese text."""
    files = {}
    for path in CATALOGUES:
        with path.open("rb") as file:
            files[path.name] = {str(m.id): str(m.string) for m in read_po(file, locale="zh") if m.id}
    return files


def _says(path: Path) -> Iterator[tuple[ast.expr, ast.Call]]:
    """Every text handed to a Language, as `say(...)` or `something.say(...)`; of `a if b else c` both."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func).split(".")[-1] == "say":
            choices = [node.args[0]]
            while choices:
                text = choices.pop()
                if isinstance(text, ast.IfExp):
                    choices += [text.body, text.orelse]
                else:
                    yield text, node


@cache
def _literals() -> set[str]:
    """Every string in the code of the faces: some texts stand in tables and are said later."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def _names(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(UI)))
def test_every_text_has_a_translation_and_gets_its_values(path: Path) -> None:
    translated = {text for texts in _translations().values() for text in texts}
    missing = []
    for text, call in _says(path):
        where = f"{path.relative_to(UI)}:{call.lineno}"
        assert not isinstance(text, ast.JoinedStr | ast.BinOp), f"{where}: a text that is put together has no key"
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value:
            values = {keyword.arg for keyword in call.keywords}
            if None not in values:  # **values are not known here
                assert values == (_names(text.value) if values else set()), f"{where}: {text.value!r}"
            missing += [text.value] if text.value not in translated else []
    assert missing == [], "in no ui/i18n/zh/*.po"


@pytest.mark.parametrize("name", [path.name for path in CATALOGUES])
def test_every_translation_is_used_and_keeps_its_names(name: str) -> None:
    for text, chinese in _translations()[name].items():
        assert text in _literals(), f"nothing says {text!r}"
        assert chinese, f"{text!r} has no translation"
        assert _names(text) == _names(chinese), text


@pytest.mark.parametrize("path", sorted(UI.rglob("*.js")), ids=lambda path: str(path.relative_to(UI)))
def test_a_script_has_no_texts_of_its_own(path: Path) -> None:
    """Neither between tags nor in what is read out of them: the server hands them over, in the right language."""
    templates = re.findall(r"template: `(.*?)`", path.read_text(encoding="utf-8"), re.DOTALL)
    markup = "".join(re.sub(r"\{\{.*?\}\}", "", template, flags=re.DOTALL) for template in templates)
    read_out = re.findall(r'\s(?:aria-label|alt|placeholder|title)="([^"]*)"', markup)
    between = re.findall(r">([^<>]*)<", re.sub(r'"[^"]*"', '""', markup))
    found = {text.strip() for text in (*read_out, *between) if re.search(r"[^\W\d_]{2}", text)}
    assert found <= {"API", "Qdesk"}


def test_a_text_in_two_files_means_the_same_in_both() -> None:
    meanings: dict[str, set[str]] = {}
    for texts in _translations().values():
        for text, chinese in texts.items():
            meanings.setdefault(text, set()).add(chinese)
    assert {text: several for text, several in meanings.items() if len(several) > 1} == {}


def test_a_moment_without_the_readers_time_zone_says_which_it_is_told_in() -> None:
    evening = datetime(2026, 11, 29, 23, 30, tzinfo=timezone(timedelta(hours=8)))
    assert language("en").utc(evening).replace("\u202f", " ") == "11/29/26, 3:30 PM UTC"
    assert language("zh").utc(evening) == "2026/11/29 15:30 UTC"


def test_numbers_and_durations_are_written_in_the_readers_way() -> None:
    english, chinese = language("en"), language("zh")
    assert english.number(1_234_567.8, 1) == chinese.number(1_234_567.8, 1) == "1,234,567.8"
    assert (english.span(180), chinese.span(180)) == ("3 minutes", "3分钟")
