"""The OpenAPI description, tested against the API by schemathesis."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from aioqless import Client
from aioqless.contrib.human_tasks import TaskQueue
from aioqless.contrib.human_tasks.api import create_api
from aioqless.contrib.human_tasks.api.operations import OPERATIONS
from tests.contrib.human_tasks.conftest import KNOWN, SECRETS
from tests.contrib.served_api import ServedApi

pytestmark = pytest.mark.long

REQUESTS = 40  # examples of each operation


@pytest.fixture(scope="module")
def served(redis_url: str) -> Iterator[ServedApi]:
    """Serve the API, with jobs to reserve."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[ASGIApp]:
        async with Client(redis_url, namespace="described") as client:
            for number in range(20):
                await client.queue("review").put("Review", {"n": number}, jid=f"j{number}")
            yield create_api({"review": TaskQueue(client, "review")}, identify=KNOWN)

    with ServedApi(opened) as served:
        yield served


@pytest.fixture(scope="module")
def headers(served: ServedApi) -> dict[str, str]:
    """Return the headers of a signed-in person."""
    with httpx.Client(base_url=served.url, trust_env=False) as http:
        answer = http.post("/session", json={"token": SECRETS["Ada"]})
        ((name, value),) = http.cookies.items()
        return {"Cookie": f"{name}={value}", "X-Token": answer.json()["token"]}


@pytest.fixture(scope="module")
def described(served: ServedApi) -> Any:
    import schemathesis  # takes long

    return schemathesis.openapi.from_url(f"{served.url}/openapi.json")


OPERATION_NAMES = [
    ("GET", "/session"),
    ("POST", "/session"),
    ("DELETE", "/session"),
    *((each.method, each.path) for each in OPERATIONS),
]


@pytest.mark.parametrize(("method", "path"), OPERATION_NAMES, ids=str)
def test_responses_conform_to_the_description(
    described: Any, served: ServedApi, headers: dict[str, str], method: str, path: str
) -> None:
    own = headers if method != "DELETE" else None
    statuses = served.check(described[path][method], REQUESTS, own)
    assert len(statuses) > 1 or path == "/session" or method == "GET"


def test_every_operation_is_described_with_its_types(described: Any) -> None:
    raw = described.raw_schema
    named = {
        (method.upper(), path): operation
        for path, item in raw["paths"].items()
        for method, operation in item.items()
    }
    assert set(named) == set(OPERATION_NAMES)
    assert len({operation["operationId"] for operation in named.values()}) == len(named)
    references = set(json.dumps(raw).split('"#/components/schemas/')[1:])
    assert {reference.partition('"')[0] for reference in references} <= set(
        raw["components"]["schemas"]
    )
    for (method, path), operation in named.items():
        assert (method == "POST") == ("requestBody" in operation), path
