"""The rules of the tree that no other tool checks: imports, sizes, module docstrings, and docs/structure.md."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import TypeGuard

import pytest

from docs.structure import PAGE, document, tracked

ROOT = Path(__file__).parent.parent
OURS = {"engine", "storage", "ui", "main", "tests", "docs"}
LONGEST_FILE = 300
LONGEST_FUNCTION = 60


def _sources() -> list[str]:
    return [path for path in tracked() if path.endswith(".py") and not path.startswith("tests/")]


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=path)


@cache
def _nodes(path: str) -> list[ast.AST]:
    return list(ast.walk(_tree(path)))


def _imports(path: str) -> Iterator[tuple[str, ast.Import | ast.ImportFrom]]:
    """Each imported module by its full name, with the statement."""
    for node in _nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield node.module or "", node


def _only_for_types(tree: ast.Module) -> set[ast.AST]:
    """Every node below an `if TYPE_CHECKING:`."""
    guards = [n for n in ast.walk(tree) if isinstance(n, ast.If) and ast.unparse(n.test).endswith("TYPE_CHECKING")]
    return {node for guard in guards for statement in guard.body for node in ast.walk(statement)}


@pytest.mark.parametrize("path", [path for path in tracked() if path.endswith(".py")])
def test_our_ui_is_never_imported_by_its_bare_name(path: str) -> None:
    """`import ui.theme` would bind the name `ui`, which is NiceGUI's everywhere else."""
    imports = [(name, node) for name, node in _imports(path) if isinstance(node, ast.Import)]
    assert [ast.unparse(node) for name, node in imports if name.split(".")[0] == "ui"] == []


def test_nothing_imports_main() -> None:
    importers = [path for path in _sources() for name, _ in _imports(path) if name == "main"]
    assert not importers


@pytest.mark.parametrize("path", [path for path in _sources() if path.startswith("ui/")])
def test_pages_know_the_store_by_its_types_only(path: str) -> None:
    tree = _tree(path)
    typing_only = _only_for_types(tree)
    at_run_time = [
        ast.unparse(node)
        for name, node in _imports(path)
        if name.split(".")[0] == "storage" and node not in typing_only
    ]
    assert not at_run_time


def test_nothing_is_kept_in_niceguis_storage() -> None:
    """So several processes share no more than the database, and no cookie of NiceGUI's is needed (docs/log.md)."""
    kept = [path for path in _sources() for node in _nodes(path) if _is_storage(node)]
    assert kept == ["main.py"]  # which sets how long its empty stores last


def _is_storage(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) in ("app.storage", "nicegui.app.storage")


@pytest.mark.parametrize("path", _sources())
def test_files_and_functions_stay_short_and_say_what_they_are(path: str) -> None:
    text, tree = (ROOT / path).read_text(encoding="utf-8"), _tree(path)
    assert ast.get_docstring(tree) or not text.strip(), "no docstring"
    if path.startswith("storage/migrations/"):
        return
    assert len(text.splitlines()) <= LONGEST_FILE
    lengths = {f.name: _length(f) - sum(map(_length, _functions_in(f))) for f in ast.walk(tree) if _is_function(f)}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}


def _is_function(node: ast.AST) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _functions_in(outer: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions directly inside: their lines are their own."""
    for node in ast.iter_child_nodes(outer):
        if _is_function(node):
            yield node
        else:
            yield from _functions_in(node)


def _length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def test_structure_page_has_a_line_for_every_file() -> None:
    assert PAGE.read_text(encoding="utf-8") == document(), "run: make docs"


def test_files_that_the_structure_page_speaks_of_are_there() -> None:
    spoken_of = re.findall(r"`((?:ui|engine|storage)/[\w/]+\.\w+)`", PAGE.read_text(encoding="utf-8"))
    assert [path for path in spoken_of if not (ROOT / path).is_file()] == []


def test_dependencies_are_imported_and_imports_are_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    used_by_product = _distributions([path for path in _sources() if not path.startswith(("docs/", "bench/"))])
    used_at_all = _distributions([path for path in tracked() if path.endswith(".py")])
    declared = _names(project["dependencies"])
    extras = project["optional-dependencies"]
    development = _names(extras["dev"])
    optional = _names(extras["oidc"] + extras["ldap"] + extras["otel"] + extras["postgresql"])
    assert used_by_product - declared - optional == set(), "imported, not declared"
    imported = used_by_product | declared | {"opentelemetry-exporter-otlp-proto-http"}  # one of several of a name
    assert optional - imported == set(), "an extra that nothing imports"
    assert optional - development - declared == set(), "tests need it too"
    assert declared - used_by_product - NOT_IMPORTED == set(), "declared, not imported"
    known = declared | development | _names(extras["bench"])
    assert used_at_all - known == set(), "imported by tests or scripts, not declared"


NOT_IMPORTED = {
    "pip",  # run as a program
    "gguf",  # transformers reads the packaged model with it
    "accelerate",  # and does not read it without this
    "starlette",  # a lower bound for what FastAPI brings
}
SHARED = {"opentelemetry": "opentelemetry-sdk"}  # the module of several distributions: the one that we ask for


def _names(requirements: list[str]) -> set[str]:
    return {_canonical(re.split(r"[<>=!\[ ;]", requirement)[0]) for requirement in requirements}


def _distributions(paths: list[str]) -> set[str]:
    """The third-party distributions that these files import."""
    modules = {name.split(".")[0] for path in paths for name, _ in _imports(path)}
    third_party = modules - OURS - set(sys.stdlib_module_names)
    by_module = packages_distributions()
    return {_canonical(SHARED.get(module, by_module[module][0])) for module in third_party if module in by_module}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
