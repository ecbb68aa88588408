"""The API's description as /docs shows it: operations in groups, nested fields in one list, in the reader's language.

Reads what FastAPI and ui/api/described.py have put into the OpenAPI document, and knows of no route by itself. What an
operation says of itself is English there, and is its own key for the catalogues (ui/i18n/zh/api.po).
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ui.i18n import Language

Schema = dict[str, Any]

GROUPS = {  # a route's tag -> the heading
    "chat": "Asking",
    "tokens": "Tokenizer",
    "requests": "Running requests",
    "operations": "For whoever runs the server",
}
LIMITS = {  # JSON Schema's word -> ours
    "minimum": "at least {n}",
    "exclusiveMinimum": "more than {n}",
    "maximum": "at most {n}",
    "maxLength": "at most {n} characters",
    "maxItems": "at most {n} items",
    "maxProperties": "at most {n} pairs",
}


@dataclass(frozen=True, slots=True)
class Field:
    name: str  # with what it is in: messages[].role
    kind: str
    required: bool
    about: str
    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reply:
    status: str
    about: str


@dataclass(frozen=True, slots=True)
class Operation:
    id: str
    method: str
    path: str
    about: str
    needs_key: bool
    path_fields: tuple[Field, ...]
    header_fields: tuple[Field, ...]
    example: str  # a body to try it with; "" where there is no body
    body: tuple[Field, ...]
    answer: tuple[Field, ...]  # of the good one; none where it is text
    replies: tuple[Reply, ...]


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    operations: tuple[Operation, ...]


def groups_of(described: Schema, say: Language) -> tuple[Group, ...]:
    """What an OpenAPI document describes, by the tags of its operations."""
    reader = _Reader(described["components"]["schemas"], say)
    found: dict[str, list[Operation]] = {}
    for path, methods in described["paths"].items():
        for method, said in methods.items():
            found.setdefault(said["tags"][0], []).append(reader.operation(method, path, said))
    return tuple(Group(say(GROUPS[tag]), tuple(operations)) for tag, operations in found.items())


class _Reader:
    def __init__(self, schemas: dict[str, Schema], say: Language) -> None:
        self._schemas, self._say = schemas, say

    def operation(self, method: str, path: str, said: Schema) -> Operation:
        body = said.get("requestBody", {}).get("content", {}).get("application/json", {})
        answer = said["responses"]["200"]["content"].get("application/json", {})
        return Operation(
            id=f"{method}-{path.strip('/').replace('/', '-')}",
            method=method,
            path=path,
            about=self._say(said["description"]),
            needs_key=said.get("security") != [],
            path_fields=self._parameters(said, "path"),
            header_fields=self._parameters(said, "header"),
            example=json.dumps(body["example"], indent=2, ensure_ascii=False) if body else "",
            body=self._all_fields(body),
            answer=self._all_fields(answer),
            replies=tuple(Reply(status, self._say(one["description"])) for status, one in said["responses"].items()),
        )

    def _parameters(self, said: Schema, place: str) -> tuple[Field, ...]:
        return tuple(
            self._field(
                one["name"], {"description": one.get("description", ""), **one["schema"]}, required=one["required"]
            )
            for one in said.get("parameters", ())
            if one["in"] == place
        )

    def _all_fields(self, content: Schema) -> tuple[Field, ...]:
        return tuple(self._fields(self._resolved(content["schema"]), "")) if "schema" in content else ()

    def _fields(self, schema: Schema, within: str) -> Iterator[Field]:
        """An object's fields, those that it must have first, each followed by the fields of what it holds."""
        needed = schema.get("required", ())
        for name, each in sorted(schema["properties"].items(), key=lambda one: one[0] not in needed):
            yield self._field(within + name, each, required=name in needed)
            inner: dict[str, Field] = {}
            for held, marks in self._objects(each):
                for field in self._fields(held, f"{within}{name}{marks}."):
                    inner.setdefault(field.name, field)  # where there is a choice of objects, the first says it
            yield from inner.values()

    def _objects(self, schema: Schema, marks: str = "") -> Iterator[tuple[Schema, str]]:
        """The objects with fields that a value of this schema is or holds; `marks` has [] for each list around them."""
        schema = self._resolved(schema)
        if "properties" in schema:
            yield schema, marks
        for choice in schema.get("anyOf", ()):
            yield from self._objects(choice, marks)
        if "items" in schema:
            yield from self._objects(schema["items"], f"{marks}[]")

    def _field(self, name: str, schema: Schema, *, required: bool) -> Field:
        about = schema.get("description") or next(
            (one["description"] for one in _choices(schema) if "description" in one), ""
        )
        return Field(
            name, self._kind(schema, required), required, self._say(about) if about else "", self._limits(schema)
        )

    def _kind(self, schema: Schema, required: bool) -> str:
        """Its JSON type. That null is taken for a field left out is not worth a word; that an answer has it, is."""
        schema = self._resolved(schema)
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return " | ".join(json.dumps(value) for value in schema["enum"])
        if "anyOf" in schema:
            kinds = dict.fromkeys(self._kind(choice, required) for choice in schema["anyOf"])
            return " | ".join(kind for kind in kinds if required or kind != "null")
        if "items" in schema:
            held = self._kind(schema["items"], True)
            return f"({held})[]" if " | " in held else f"{held}[]"
        return str(schema.get("type", "any"))

    def _limits(self, schema: Schema) -> tuple[str, ...]:
        found = {word: one[word] for one in (schema, *_choices(schema)) for word in LIMITS if word in one}
        limits = [self._say(LIMITS[word], n=value) for word, value in found.items()]
        if schema.get("default") not in (None, "", {}):
            limits.append(self._say("{value} where it is left out", value=json.dumps(schema["default"])))
        return tuple(limits)

    def _resolved(self, schema: Schema) -> Schema:
        return self._schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _choices(schema: Schema) -> list[Schema]:
    return list(schema.get("anyOf", ()))
