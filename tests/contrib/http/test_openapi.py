"""The OpenAPI description, tested against the API by schemathesis."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.types import ASGIApp

from aioqless import Client
from aioqless.contrib.http import create_api
from tests.contrib.http.conftest import KNOWN, SHOP, routers
from tests.contrib.http_api import jobs
from tests.contrib.served_api import ServedApi

HEADERS = {"Authorization": f"Bearer {SHOP}"}
SHORT, LONG = 2, 60  # examples of each operation
JIDS = {"shop-waiting": 0, "shop-scheduled": 60}  # with their delays


@pytest.fixture(scope="module")
def served(redis_url: str) -> Iterator[ServedApi]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[ASGIApp]:
        async with Client(redis_url, namespace="described") as client:
            for jid, delay in JIDS.items():
                await client.put(jobs.greet.data(name="Ada"), jid=jid, delay=delay, tags=["x"])
            for number in range(20):
                await client.queue("review").put("Review", {"n": number}, jid=f"j{number}")
            yield create_api(*routers(client), identify=KNOWN)

    with ServedApi(opened) as served:
        yield served


@pytest.fixture(scope="module")
def described(served: ServedApi) -> Any:
    import schemathesis  # takes long

    return schemathesis.openapi.from_url(f"{served.url}/openapi.json", headers=HEADERS)


@pytest.mark.parametrize("examples", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_responses_conform_to_the_description(
    described: Any, served: ServedApi, examples: int
) -> None:
    def name_jobs(case: Any) -> None:
        if "wait" in (case.query or {}):
            case.query["wait"] = min(case.query["wait"], 0.01, key=str)
        if "jid" in (case.path_parameters or {}):
            case.path_parameters["jid"] = [*JIDS][len(str(case.query)) % 2]

    statuses: set[int] = set()
    for found in described.get_all_operations():
        statuses |= served.check(found.ok(), examples, HEADERS, name_jobs)
    assert {200, 400, 404, 422} <= statuses


def test_every_operation_is_described_with_its_types(described: Any) -> None:
    raw = described.raw_schema
    operations = [
        (method, path, operation)
        for path, item in raw["paths"].items()
        for method, operation in item.items()
    ]
    named = {operation["operationId"]: operation for _, _, operation in operations}
    assert len(named) == len(operations)
    assert "put_greet" not in named and {"put_shop_greet", "put_back_greet"} <= named.keys()
    assert {"result_total", "put_many_whole", "get_job", "issue_token"} <= named.keys()
    assert {"reserve_task", "finish_task", "task_status", "sign_in"} <= named.keys()
    for method, path, operation in operations:
        if path.startswith("/tasks/"):
            assert (method == "post") == ("requestBody" in operation), path
    references = set(json.dumps(raw).split('"#/components/schemas/')[1:])
    schemas = raw["components"]["schemas"]
    assert {reference.partition('"')[0] for reference in references} <= set(schemas)
    assert schemas["shop_greet_data"] == {
        "title": "shop_greet_data",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "times": {"type": "integer", "default": 1, "format": "int64"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }  # fmt: skip
    assert schemas["Total"]["required"] == ["count", "number"]
    lines = schemas["Order"]["properties"]["lines"]["items"]
    assert lines["properties"]["count"]["minimum"] == 1  # pydantic's
