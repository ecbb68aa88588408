"""The audit trail in the reader's language; what is not known there stays as it is written."""

import ast
from pathlib import Path

import pytest

from ui.i18n import language
from ui.pages.admin.audit_words import details, kinds, names

UI = Path(__file__).parents[2] / "ui"
ENGLISH, CHINESE = language("en"), language("zh")


@pytest.mark.parametrize(
    ("action", "written", "english", "chinese"),
    [
        ("review.search", "text=%E8%A5%BF%E6%B9%96&person=a+b", "Text: 西湖 · Person: a b", "内容: 西湖 · 用户: a b"),
        ("review.search", "", "", ""),
        ("limits.change", "concurrent 10 → 4", "Running at once 10 → 4", "同时运行 10 → 4"),
        ("user.role", "staff → admin", "Staff → Administrator", "员工 → 管理员"),
        ("review.hold", "person: case 17", "all of this person: case 17", "此人的全部: case 17"),
        ("review.label", "staff", "staff", "staff"),
        ("something.new", "text=a", "text=a", "text=a"),
    ],
)
def test_details_are_told_as_a_person_would_write_them(action: str, written: str, english: str, chinese: str) -> None:
    assert details(ENGLISH, action, written) == english
    assert details(CHINESE, action, written) == chinese


def test_every_action_that_is_written_down_has_words_and_a_kind() -> None:
    calls = [
        node
        for path in UI.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    ]
    written = {
        each.value
        for call in calls
        if ast.unparse(call.func).split(".")[-1] in ("noted", "audit", "_do", "_hold", "add")
        for argument in call.args
        for each in ast.walk(argument)
        if isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.count(".") == 1
    }
    actions = {each for each in written if each.replace(".", "").replace("_", "").isalpha()}
    assert "review.note" in actions
    assert not actions - names(ENGLISH).keys()
    assert not [each for each in actions if not each.startswith(tuple(kind for kind in kinds(ENGLISH) if kind))]
