"""What never appears in the code: what runs what somebody else has written, or trusts what nobody has checked."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from docs.structure import tracked

ROOT = Path(__file__).parent.parent
SOURCES = [
    path for path in tracked() if path.endswith(".py") and path.split("/")[0] in ("main.py", "engine", "storage", "ui")
]
SCRIPTS = [path for path in tracked() if path.startswith("ui/") and path.endswith(".js")]

NO_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "telnetlib", "ftplib"}
NO_MODULES |= {"diskcache", "markdown2"}  # have a fault that no release mends, and come with other packages
NO_CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "torch.load",
    "yaml.load",
    "os.system",
    "os.popen",
    "tempfile.mktemp",
}
NO_CALLS |= {"np.load", "numpy.load", "torch.hub.load", "ui.restructured_text", "ui.editor", "ui.upload", "ui.add_css"}
NO_CALLS |= {"ui.markdown", "torch.export.load", "torch.jit.load", "torch.package.PackageImporter"}
TRUSTING = ("trust_remote_code", "shell", "verify")  # what a call may be told
RENDERED = {  # where scripts put in what ui/components/markdown.py has made safe
    "ui/components/review/inbox.js": {"v-html"},
    "ui/components/review/work.js": {"v-html"},
    "ui/components/thread.js": {"insertAdjacentHTML"},
}
SAFE_FROM = {  # the first version without any fault of docs/security.md's table
    "nicegui": (3, 12, 0),
    "python-socketio": (5, 14, 0),
    "starlette": (1, 3, 1),
    "transformers": (5, 10, 0),
}
NO_SCRIPT = ("v-html", ".outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function")


@cache
def _nodes(path: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))))


def _calls(path: str) -> Iterator[ast.Call]:
    yield from (node for node in _nodes(path) if isinstance(node, ast.Call))


def _name(call: ast.Call) -> str:
    """What is called, with its dots; "" where that is no name."""
    called: ast.expr = call.func
    parts: list[str] = []
    while isinstance(called, ast.Attribute):
        parts.insert(0, called.attr)
        called = called.value
    return ".".join([called.id, *parts]) if isinstance(called, ast.Name) else ""


def test_nothing_runs_what_a_file_or_a_person_brings() -> None:
    for path in SOURCES:
        _check(path)


def _check(path: str) -> None:
    imported = {alias.name for node in _nodes(path) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {str(node.module) for node in _nodes(path) if isinstance(node, ast.ImportFrom)}
    assert not imported & NO_MODULES, path
    for call in _calls(path):
        assert _name(call) not in NO_CALLS, f"{path}, line {call.lineno}"
        said = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords if keyword.arg in TRUSTING}
        assert said.get("trust_remote_code", "False") == "False", f"{path}, line {call.lineno}"
        assert not {("shell", "True"), ("verify", "False")} & said.items(), f"{path}, line {call.lineno}"


def test_models_are_read_without_their_own_code() -> None:
    calls = [call for path in SOURCES for call in _calls(path) if _name(call).startswith("Auto")]
    assert len(calls) >= 2
    for call in calls:
        assert "trust_remote_code" in {keyword.arg for keyword in call.keywords}, ast.unparse(call)


def test_html_is_put_into_pages_where_it_was_made_and_nowhere_else() -> None:
    """`sanitize=False` is for our own escaped headings; scripts put in what markdown.py has made."""
    unchecked = {
        path for path in SOURCES for call in _calls(path) for keyword in call.keywords
        if keyword.arg == "sanitize" and ast.unparse(keyword.value) == "False"
    }  # fmt: skip
    assert unchecked <= {"ui/theme.py"}
    for path in SCRIPTS:
        text = (ROOT / path).read_text(encoding="utf-8")
        assert {word for word in NO_SCRIPT if word in text} <= RENDERED.get(path, set()), path


def test_every_dependency_is_pinned() -> None:
    files = [ROOT / "constraints.txt", *(ROOT / "tests/clients/requirements").glob("*.txt")]
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    pins = [line for line in lines if line and not line.startswith("#")]
    assert len(pins) > 50
    assert [line for line in pins if "==" not in line] == []


def test_no_pin_has_a_fault_that_is_known() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    versions = {name: tuple(int(part) for part in pins[name].split(".")) for name in SAFE_FROM}
    assert {name: version for name, version in versions.items() if version < SAFE_FROM[name]} == {}
