"""The documents say what is there, all of it and nothing else: settings, routes, metrics, commands, links."""

import json
import os
import re
from pathlib import Path

import httpx
import pytest

from engine.settings import document
from tests.server import API_KEY, run_to_its_end, running_server

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "deploy").glob("*.md")),
]

LIST_ROUTES = """
import json, main
from engine.settings import load
from nicegui import app
main.build(load())
print(json.dumps([[sorted(getattr(r, "methods", None) or ["WS"]), r.path] for r in app.routes if hasattr(r, "path")]))
"""


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _routes(data_dir: Path) -> set[str]:
    """Every route of the real app as "METHOD /path", but for NiceGUI's own, static files, and what HTTP adds."""
    settings = {"QDESK_DATA_DIR": str(data_dir), "QDESK_BACKEND": "scripted"}
    code, listing = run_to_its_end(("-c", LIST_ROUTES), {**os.environ, **settings})
    assert code == 0, listing
    routes = json.loads(listing.splitlines()[-1])
    return {
        f"{method} {path}"
        for methods, path in routes
        for method in set(methods) - {"HEAD", "OPTIONS"}
        if not path.startswith(("/_nicegui", "/static"))
    }


def test_settings_page_is_what_the_settings_say() -> None:
    assert _read("docs/settings.md") == document(), "run: make docs"


def test_api_page_names_every_route_and_no_other(tmp_path: Path) -> None:
    named = set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE|WS) /[^`\s]*)`", _read("docs/api.md")))
    assert named == _routes(tmp_path)


def test_api_page_names_every_metric_and_no_other() -> None:
    with running_server() as server:
        answer = httpx.get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {API_KEY}"})
    assert answer.status_code == 200
    served = set(re.findall(r"^# TYPE (qdesk_\w+)", answer.text, flags=re.MULTILINE))
    assert set(re.findall(r"`(qdesk_\w+)", _read("docs/api.md"))) == served


def test_api_page_names_the_clients_in_the_versions_that_are_tested() -> None:
    requirements = (ROOT / "tests/clients/requirements").glob("*.txt")
    pins = "\n".join(path.read_text(encoding="utf-8") for path in requirements) + _read("constraints.txt")
    tested = set(re.findall(r"^(openai|langchain-openai|pydantic-ai-slim|llm)==(\S+)", pins, flags=re.MULTILINE))
    javascript = json.loads(_read("tests/clients/node/package.json"))["dependencies"]
    tested |= {item for item in javascript.items() if item[0] != "zod"}  # with which the schemas are written
    table = re.search(r"^\| client \| versions \|\n(.*?)\n\n", _read("docs/api.md"), flags=re.MULTILINE | re.DOTALL)
    assert table
    assert {f"`{name}`" in table[1] for name, _ in tested} == {True}
    assert sorted(re.findall(r"\d+\.[\d.]*\d", table[1])) == sorted(version for _, version in tested)


def test_every_command_of_the_readme_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z]+):", _read("Makefile"), flags=re.MULTILINE))
    commands = set(re.findall(r"\bmake ([a-z]+)", "\n".join(_code(_read("README.md")))))
    assert {"run", "test"} <= commands <= targets


def test_every_qdesk_name_in_the_documents_is_a_setting() -> None:
    settings = set(re.findall(r"`(QDESK_\w+)`", document()))
    for page in PAGES:
        assert set(re.findall(r"\bQDESK_[A-Z_]*[A-Z]\b", page.read_text(encoding="utf-8"))) <= settings, page.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_inside_the_repository_leads_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href|srcset)="([^"]+)"', text)
    for target in targets:
        path, _, anchor = target.partition("#")
        if "://" in target:
            continue
        linked = page.parent / path if path else page
        assert linked.exists(), target
        if anchor:
            assert anchor in _anchors(linked.read_text(encoding="utf-8")), target


def test_the_file_tree_of_the_readme_is_there() -> None:
    tree = re.search(r"```text\n(.*?)```", _read("README.md"), flags=re.DOTALL)
    assert tree
    parents: list[str] = []
    for line in tree[1].splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        parents[depth:] = [name.rstrip("/")]
        assert (ROOT / "/".join(parents)).exists(), line


def _code(text: str) -> list[str]:
    """What stands in code, in blocks and in the line."""
    return re.findall(r"```.*?```|`[^`\n]+`", text, flags=re.DOTALL)


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
