"""/openapi.json says what there is. That the server keeps to it is shown by tests/clients/test_schemathesis.py."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.server import RunningServer, bearer
from ui.access import OPEN, ROUTES
from ui.api.described import WHEN

API_PAGE = Path(__file__).parents[3] / "docs" / "api.md"


@pytest.fixture(scope="module")
def described(server: RunningServer) -> Any:
    return httpx.get(f"{server.url}/openapi.json", headers=bearer()).json()


def operations(described: Any) -> Iterator[tuple[str, Any]]:
    for path, methods in described["paths"].items():
        yield from ((f"{method.upper()} {path}", operation) for method, operation in methods.items())


def test_every_reference_leads_to_a_schema_that_is_there(described: Any) -> None:
    references = set(re.findall(r'"\$ref": "#/components/schemas/(\w+)"', json.dumps(described)))
    assert {"ChatBody", "TextPart", "ChatCompletion", "Failure"} <= references
    assert '"#/$defs' not in json.dumps(described)
    assert references <= set(described["components"]["schemas"])


def test_a_key_is_said_to_be_needed_where_it_is(described: Any) -> None:
    without = {name for name, operation in operations(described) if operation.get("security") == []}
    assert without == {"GET /livez", "GET /readyz", "GET /health"}
    assert all(ROUTES[name] == OPEN for name in without)
    assert all("401" in operation["responses"] for name, operation in operations(described) if name not in without)


def test_every_error_that_is_described_is_in_the_table_for_people(described: Any) -> None:
    told = {int(status) for _, operation in operations(described) for status in operation["responses"]} - {200}
    assert told == set(WHEN)
    assert told <= {int(status) for status in re.findall(r"^\| (\d{3}) \|", API_PAGE.read_text("utf-8"), re.MULTILINE)}


def test_what_the_page_offers_to_try_is_answered(server: RunningServer, described: Any) -> None:
    """In this order: a text has to be cut into tokens before there are tokens of a script."""
    for path in ("/", "/v1/chat/completions", "/v1/completions", "/v1/tokenize", "/v1/detokenize"):
        body = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["example"]
        assert httpx.post(server.url + path, json=body, headers=bearer()).status_code == 200, path


@pytest.mark.parametrize(
    ("path", "allowed"), [("/v1/models", "GET, HEAD"), ("/v1/completions", "POST"), ("/livez", "GET, HEAD")]
)
def test_a_method_that_does_not_exist_is_told_which_do(server: RunningServer, path: str, allowed: str) -> None:
    response = httpx.request("TRACE", server.url + path, headers=bearer())
    assert response.status_code == 405
    assert response.headers["allow"] == allowed
    assert response.json()["error"]["code"] == "method_not_allowed"
