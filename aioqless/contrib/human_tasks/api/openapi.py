"""The OpenAPI description, derived from the table of operations and the schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from aioqless.contrib.human_tasks.api.checks import COOKIE
from aioqless.contrib.human_tasks.api.operations import OPERATIONS, Operation
from aioqless.contrib.human_tasks.api.schemas import Error, SessionInfo, SignIn

JSON = "application/json"
KEY_PATTERN = "^[A-Za-z0-9_.:-]{1,64}$"
TAB_PATTERN = "^[A-Za-z0-9_-]{1,64}$"
STATUS_MEANINGS = {
    400: "The request is malformed.",
    401: "No session.",
    403: "Wrong origin, or the session token or startup token is missing.",
    404: "There is no such task queue or job.",
    408: "The request took too long.",
    409: "The job is reserved by another person, or not at all.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The answer can't be stored.",
    429: "Too many attempts to sign in.",
    503: "Redis is unavailable.",
}
HEADER_PARAMETERS = [
    {
        "name": "X-Tab",
        "in": "header",
        "description": "Which of a browser's tabs this is: each has reservations of its own.",
        "schema": {"type": "string", "pattern": TAB_PATTERN},
    },
    {
        "name": "Idempotency-Key",
        "in": "header",
        "description": (
            "This attempt's own text: sent again within two minutes, it is answered as it was "
            "first, and not done again."
        ),
        "schema": {"type": "string", "pattern": KEY_PATTERN},
    },
]


def describe(title: str, queues: Iterable[str]) -> dict[str, Any]:
    """Return the OpenAPI document."""
    types = list(
        {
            each: None
            for operation in OPERATIONS
            for each in (operation.body, operation.answer)
            if each
        }
        | {SignIn: None, SessionInfo: None}
    )
    _, schemas = msgspec.json.schema_components(
        [*types, Error], ref_template="#/components/schemas/{name}"
    )
    paths: dict[str, dict[str, Any]] = {"/session": _session()}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(
            operation, sorted(queues)
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": title,
            "version": "1",
            "description": "Reserve jobs for people, for a limited time.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
                "token": {"type": "apiKey", "in": "header", "name": "X-Token"},
            },
        },
    }


def _operation(operation: Operation, queues: list[str]) -> dict[str, Any]:
    changes = operation.method != "GET"
    parameters: list[dict[str, Any]] = [
        {"name": each, "in": "path", "required": True, "schema": {"type": "string", "enum": queues}}
        for each in re.findall(r"{(\w+)}", operation.path)
    ]
    parameters += [
        {
            "name": each,
            "in": "query",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 512},
        }
        for each in operation.query
    ]
    parameters += HEADER_PARAMETERS if changes else HEADER_PARAMETERS[:1]
    refusals = (
        (400, 401, 403, 404, 408, 409, 413, 415, 422, 503) if changes else (400, 401, 403, 404, 503)
    )
    described = _described(operation.name, operation.summary, operation.answer, refusals)
    described |= {
        "parameters": parameters,
        "security": [{"session": [], "token": []} if changes else {"session": []}],
    }
    if operation.body:
        described["requestBody"] = _content(operation.body) | {"required": True}
    return described


def _session() -> dict[str, Any]:
    begin = _described(
        "sign_in",
        "Begin a session; its cookie is set",
        SessionInfo,
        (400, 401, 403, 408, 413, 415, 429, 503),
    )
    return {
        "get": _described(
            "who", "Who is signed in, and the token for changes", SessionInfo, (403, 503)
        ),
        "post": begin | {"requestBody": _content(SignIn) | {"required": True}},
        "delete": _described("sign_out", "End the session", SessionInfo, (403, 415, 503)),
    }


def _described(name: str, summary: str, answer: Any, refusals: Iterable[int]) -> dict[str, Any]:
    answers = {"200": {"description": summary} | _content(answer)}
    answers |= {
        str(status): {"description": STATUS_MEANINGS[status]} | _content(Error)
        for status in refusals
    }
    return {"operationId": name, "summary": summary, "responses": answers}


def _content(type_: Any) -> dict[str, Any]:
    return {"content": {JSON: {"schema": {"$ref": f"#/components/schemas/{type_.__name__}"}}}}
