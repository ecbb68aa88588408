"""What /docs shows of the OpenAPI document: every field in its place, and all of it in the reader's language."""

from collections.abc import Iterator

import httpx
import pytest

from tests.server import RunningServer, bearer
from ui.api.reference import Field, Group, Operation, groups_of
from ui.i18n import language


@pytest.fixture(scope="module")
def described(server: RunningServer) -> dict[str, object]:
    found: dict[str, object] = httpx.get(f"{server.url}/openapi.json", headers=bearer()).json()
    return found


def operations(groups: tuple[Group, ...]) -> dict[str, Operation]:
    return {f"{one.method} {one.path}": one for group in groups for one in group.operations}


def texts(groups: tuple[Group, ...]) -> Iterator[str]:
    for group in groups:
        yield group.title
        for one in group.operations:
            yield one.about
            yield from (reply.about for reply in one.replies)
            for field in (*one.path_fields, *one.header_fields, *one.body, *one.answer):
                yield field.about
                yield from field.limits


def test_every_operation_is_shown_and_can_be_told_from_the_others(described: dict[str, object]) -> None:
    shown = operations(groups_of(described, language("en")))
    paths = described["paths"]
    assert isinstance(paths, dict)
    assert set(shown) == {f"{method} {path}" for path, methods in paths.items() for method in methods}
    assert len({one.id for one in shown.values()}) == len(shown)


def test_nothing_that_is_said_lacks_its_chinese(described: dict[str, object]) -> None:
    english, chinese = (list(texts(groups_of(described, language(code)))) for code in ("en", "zh"))
    assert len(english) == len(chinese) > 200
    assert {said for said, in_chinese in zip(english, chinese, strict=True) if said and said == in_chinese} == set()


def test_fields_are_named_with_what_they_are_in(described: dict[str, object]) -> None:
    shown = operations(groups_of(described, language("en")))
    chat = {field.name: field for field in shown["post /v1/chat/completions"].body}
    assert next(iter(chat)) == "messages", "what must be there comes first"
    assert chat["messages"] == Field("messages", "object[]", True, "", ("at most 10000 items",))
    assert chat["messages[].content"].kind == "string | object[]"
    assert chat["messages[].content[].type"].kind == '"text"'
    assert chat["temperature"] == Field("temperature", "number", False, "0 is greedy.", ("at least 0", "at most 2"))
    assert chat["stop"].about == "Up to 8 strings of up to 200 characters."
    assert chat["stream"].limits == ("false where it is left out",)
    running = {field.name: field for field in shown["get /v1/requests"].answer}
    assert running["data[].position"].kind == "integer | null", "an answer says so"
    cancel = shown["post /v1/requests/{id}/cancel"]
    assert [field.name for field in cancel.path_fields] == ["id"]
    assert (cancel.example, cancel.needs_key, shown["get /livez"].needs_key) == ("", True, False)
