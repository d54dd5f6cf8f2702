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
class Operation:
    """An operation as it is described; parameters and security are as OpenAPI has them."""

    method: str
    path: str
    name: str
    summary: str
    answer: Any
    body: Any = None
    refusals: Sequence[int] = ()
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
    operations: Sequence[Operation],
    meanings: Mapping[int, str],
    security_schemes: Mapping[str, Schema],
    schema_hook: Callable[[type], Schema] | None = None,
) -> Schema:
    """Return the OpenAPI document.

    `meanings` says what the statuses of errors mean; `schema_hook` returns the schema of a type
    that msgspec doesn't know.
    """
    types = [Error, *(each for one in operations for each in (one.answer, one.body))]
    schemas, components = msgspec.json.schema_components(
        types, schema_hook=schema_hook, ref_template=REFERENCE
    )
    _add_formats([schemas, components, *(each.parameters for each in operations)])
    error, *others = ({"content": {JSON: {"schema": schema}}} for schema in schemas)
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
