"""The OpenAPI description, derived from the table of operations and the schemas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from aioqless.contrib.http import openapi
from aioqless.contrib.human_tasks.api.operations import OPERATIONS, Operation
from aioqless.contrib.human_tasks.api.schemas import SessionInfo, SignIn

KEY_PATTERN = "^[A-Za-z0-9_.:-]{1,64}$"
TAB_PATTERN = "^[A-Za-z0-9_-]{1,64}$"
STATUS_MEANINGS = {
    400: "The request is malformed.",
    401: "No session, or a wrong token.",
    403: "Wrong origin, the session's token is missing, or the queue is not this person's.",
    404: "There is no such task queue or job.",
    408: "The request took too long.",
    409: "The job is reserved by another person, or not at all.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The answer can't be stored.",
    429: "The next queue is full.",
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


def describe(title: str, queues: Iterable[str], cookie: str) -> dict[str, Any]:
    """Return the OpenAPI document."""
    info = {
        "title": title,
        "version": "1",
        "description": "Reserve jobs for people, for a limited time.",
    }
    schemes = {
        "session": {"type": "apiKey", "in": "cookie", "name": cookie},
        "csrf": {"type": "apiKey", "in": "header", "name": "X-Token"},
        "token": {"type": "http", "scheme": "bearer"},
    }
    names = sorted(queues)
    operations = [*SESSION, *(_operation(each, names) for each in OPERATIONS)]
    return openapi.describe(info, operations, STATUS_MEANINGS, schemes)


def _operation(operation: Operation, queues: list[str]) -> Operation:
    changes = operation.method != "GET"
    parameters = openapi.list_path_parameters(
        operation.path, lambda _: {"type": "string", "enum": queues}
    )
    parameters += [
        {
            "name": each,
            "in": "query",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 512},
        }
        for each in operation.query
    ]
    return replace(
        operation,
        refusals=tuple(STATUS_MEANINGS) if changes else (400, 401, 403, 404, 503),
        parameters=parameters + (HEADER_PARAMETERS if changes else HEADER_PARAMETERS[:1]),
        security=[{"token": []}, {"session": [], "csrf": []} if changes else {"session": []}],
    )


SESSION = (
    openapi.Operation(
        method="GET", path="/session", name="who",
        summary="Who is signed in, and the token for changes", answer=SessionInfo,
        refusals=(403, 503),
    ),
    openapi.Operation(
        method="POST", path="/session", name="sign_in",
        summary="Begin a session; its cookie is set", answer=SessionInfo, body=SignIn,
        refusals=(400, 401, 403, 408, 413, 415, 503),
    ),
    openapi.Operation(
        method="DELETE", path="/session", name="sign_out", summary="End the session",
        answer=SessionInfo, refusals=(403, 415, 503),
    ),
)  # fmt: skip
