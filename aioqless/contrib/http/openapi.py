"""OpenAPI descriptions, derived from operations and the types of their bodies and answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from aioqless.contrib.http.json_api import JSON, Error

REFERENCE = "#/components/schemas/{name}"
Schema: TypeAlias = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Description:
    """The description of one operation.

    Attributes:
        method: HTTP method.
        path: Path, with parameters in braces.
        name: The operation's id.
        summary: What it does.
        answer: Type of the answer.
        refusals: Statuses of the errors that it answers.
        body: Type of the body, if it takes one.
        parameters: Its parameters, as OpenAPI has them.
        security: Its security requirements, as OpenAPI has them.
    """

    method: str
    path: str
    name: str
    summary: str
    answer: Any
    refusals: Sequence[int]
    body: Any = None
    parameters: Sequence[Schema] = ()
    security: Sequence[dict[str, list[str]]] = ()


def list_path_parameters(path: str, schema_of: Callable[[str], Schema]) -> list[Schema]:
    """Return the parameters in a path, as OpenAPI has them."""
    return [
        {"name": each, "in": "path", "required": True, "schema": schema_of(each)}
        for each in re.findall(r"{(\w+)}", path)
    ]


def describe(
    info: Mapping[str, str],
    operations: Sequence[Description],
    meanings: Mapping[int, str],
    security_schemes: Mapping[str, Schema],
    schema_hook: Callable[[type], Schema] | None = None,
) -> Schema:
    """Return the OpenAPI document.

    Args:
        info: Title, version and description.
        operations: The operations.
        meanings: What the statuses of errors mean.
        security_schemes: The security schemes by name.
        schema_hook: Returns the schema of a type that msgspec doesn't know.
    """
    types = [Error, *(each for one in operations for each in (one.answer, one.body))]
    schemas, components = msgspec.json.schema_components(
        types, schema_hook=schema_hook, ref_template=REFERENCE
    )
    _add_formats([schemas, components, *(each.parameters for each in operations)])
    error, *others = map(_content, schemas)
    paths: dict[str, Schema] = {}
    for number, each in enumerate(operations):
        responses = {"200": {"description": each.summary} | others[2 * number]} | {
            str(status): {"description": meanings[status]} | error for status in each.refusals
        }
        described: Schema = {
            "operationId": each.name,
            "summary": each.summary,
            "parameters": list(each.parameters),
            "responses": responses,
            "security": list(each.security),
        }
        if each.body is not None:
            described["requestBody"] = others[2 * number + 1] | {"required": True}
        paths.setdefault(each.path, {})[each.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": dict(info),
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": dict(security_schemes)},
    }


def _add_formats(found: object) -> None:
    """Give numbers the formats that JSON has: generators take 32 bits for others."""
    if isinstance(found, dict):
        if found.get("type") in ("number", "integer"):
            found["format"] = "double" if found["type"] == "number" else "int64"
        found = list(found.values())
    if isinstance(found, list | tuple):
        for each in found:
            _add_formats(each)


def _content(schema: Schema) -> Schema:
    return {"content": {JSON: {"schema": schema}}}
